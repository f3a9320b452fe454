# Tests of the whole: programs against an installed tree, and what takes the system's own accounting or many repetitions.

# threads counted by the test itself (tests/interpose.h)
foreach(test model_real_memory model_quantize)
    if(TARGET test_${test})
        target_link_options(test_${test} PRIVATE -Wl,--wrap=pthread_create)
    endif()
endforeach()

# programs built against an installed tree, shared and static
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG AND TARGET llama AND NOT ARENITE_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    set(install_test ${PROJECT_SOURCE_DIR}/tests/install/installed.sh ${CMAKE_COMMAND})
    if(BUILD_SHARED_LIBS)
        add_test(NAME install/shared COMMAND ${install_test} ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER})
        set_tests_properties(install/shared PROPERTIES TIMEOUT 300 LABELS slow)
    endif()
    add_test(NAME install/static_build COMMAND sh -ec "
        '${CMAKE_COMMAND}' -S '${PROJECT_SOURCE_DIR}' -B '${PROJECT_BINARY_DIR}/static' -G '${CMAKE_GENERATOR}' \
            -DCMAKE_C_COMPILER='${CMAKE_C_COMPILER}' -DCMAKE_BUILD_TYPE=Check -DCMAKE_C_FLAGS_CHECK=-O0 -DBUILD_SHARED_LIBS=OFF \
            -DARENITE_TESTS=OFF
        '${CMAKE_COMMAND}' --build '${PROJECT_BINARY_DIR}/static' -j ${cores}")
    set_tests_properties(install/static_build PROPERTIES TIMEOUT 900 LABELS slow FIXTURES_SETUP static COST 40)
    add_test(NAME install/symbols COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DSOURCE=${PROJECT_SOURCE_DIR}
        "-DLIBRARIES=${PROJECT_BINARY_DIR}/static/lib/libggml.a ${PROJECT_BINARY_DIR}/static/lib/libllama.a"
        -P ${PROJECT_SOURCE_DIR}/tests/core/symbols.cmake)
    set_tests_properties(install/symbols PROPERTIES LABELS slow FIXTURES_REQUIRED static)
    add_test(NAME install/static COMMAND ${install_test} ${PROJECT_BINARY_DIR}/static ${CMAKE_C_COMPILER} --static)
    set_tests_properties(install/static PROPERTIES TIMEOUT 300 LABELS slow FIXTURES_REQUIRED static)
endif()

# under the thread sanitizer, as often as it takes to meet what happens once in ten thousand times
if(ARENITE_SANITIZE STREQUAL "thread")
    add_test(NAME cpu/alternations COMMAND test_cpu_threads 100000)
    set_tests_properties(cpu/alternations PROPERTIES TIMEOUT 600 LABELS threads)
endif()
