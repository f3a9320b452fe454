# NEON kernels on other machines: the kernel tests and a whole model, built by a cross compiler in a build of their own and run
# under qemu.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" OR CMAKE_CROSSCOMPILING OR
   NOT EXISTS ${PROJECT_SOURCE_DIR}/src/backends/cpu/simd/neon_int.h)
    return()
endif()
find_program(AARCH64_CC aarch64-linux-gnu-gcc)
find_program(AARCH64_RUN qemu-aarch64-static)
if(NOT AARCH64_CC OR NOT AARCH64_RUN)
    message(STATUS "NEON kernels are not tested here: aarch64-linux-gnu-gcc or qemu-aarch64-static is missing")
    return()
endif()

set(neon_build ${PROJECT_BINARY_DIR}/neon)
set(neon_tests float attention quant_dot quant_rows)
list(TRANSFORM neon_tests PREPEND test_cpu_ OUTPUT_VARIABLE neon_targets)
list(APPEND neon_targets whole)
string(JOIN " " neon_targets ${neon_targets})
add_test(NAME neon/build COMMAND sh -ec "
    '${CMAKE_COMMAND}' -S '${PROJECT_SOURCE_DIR}' -B '${neon_build}' -G '${CMAKE_GENERATOR}' -DCMAKE_BUILD_TYPE=Check -DCMAKE_C_FLAGS_CHECK=-O1 \\
        -DCMAKE_TOOLCHAIN_FILE='${PROJECT_SOURCE_DIR}/cmake/aarch64.cmake' -DARENITE_TOOLS=OFF
    '${CMAKE_COMMAND}' --build '${neon_build}' -j ${cores} --target ${neon_targets}")
set_tests_properties(neon/build PROPERTIES TIMEOUT 900 LABELS slow FIXTURES_SETUP neon COST 70)
foreach(name ${neon_tests})
    add_test(NAME neon/${name} COMMAND ${AARCH64_RUN} -L /usr/aarch64-linux-gnu ${neon_build}/tests/test_cpu_${name})
    set_tests_properties(neon/${name} PROPERTIES TIMEOUT 300 LABELS slow FIXTURES_REQUIRED neon)
endforeach()
# the same logits, byte for byte, as the build for this machine
foreach(row "neon 12" "dotprod 24")
    separate_arguments(row)
    list(GET row 0 level)
    list(GET row 1 n)
    add_test(NAME neon/whole_${level} COMMAND sh -ec "
        cd '${neon_build}'
        '$<TARGET_FILE:whole>' '${PROJECT_SOURCE_DIR}/models/smollm2-135m.gguf' - ${n} native_${level}.logits
        ${AARCH64_RUN} -L /usr/aarch64-linux-gnu tests/whole '${PROJECT_SOURCE_DIR}/models/smollm2-135m.gguf' ${level} ${n} ${level}.logits
        cmp native_${level}.logits ${level}.logits
        rm  native_${level}.logits ${level}.logits")
    set_tests_properties(neon/whole_${level} PROPERTIES TIMEOUT 300 LABELS slow FIXTURES_REQUIRED neon SKIP_RETURN_CODE 77)
endforeach()
