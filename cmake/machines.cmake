# Machines of other kinds: 32-bit x86, and big-endian S/390 under qemu. What depends on the size of a word or on the order of bytes
# runs there: reading and writing files, conversions, the portable products, whole models with the logits of this machine.
if(CMAKE_CROSSCOMPILING OR ARENITE_SANITIZE OR NOT TARGET whole)
    return()
endif()
find_program(I686_CC  i686-linux-gnu-gcc)
find_program(S390X_CC s390x-linux-gnu-gcc)
find_program(S390X_RUN qemu-s390x-static)
set(smollm2 ${PROJECT_SOURCE_DIR}/models/smollm2-135m.gguf)

# machine(NAME RUN...): builds for it with cmake/NAME.cmake, and the tests that run there
function(machine name)
    string(JOIN " " run ${ARGN})
    set(build ${PROJECT_BINARY_DIR}/${name})
    set(tests core_gguf_read core_gguf_write cpu_quant_dot quant_golden quant_rules)
    list(TRANSFORM tests PREPEND test_ OUTPUT_VARIABLE targets)
    string(JOIN " " targets ${targets})
    add_test(NAME ${name}/build COMMAND sh -ec "
        '${CMAKE_COMMAND}' -S '${PROJECT_SOURCE_DIR}' -B '${build}' -G '${CMAKE_GENERATOR}' -DCMAKE_BUILD_TYPE=Check -DCMAKE_C_FLAGS_CHECK=-O1 \\
            -DCMAKE_TOOLCHAIN_FILE='${PROJECT_SOURCE_DIR}/cmake/${name}.cmake' -DARENITE_TOOLS=OFF -DBUILD_SHARED_LIBS=OFF
        '${CMAKE_COMMAND}' --build '${build}' -j ${cores} --target whole ${targets}")
    set_tests_properties(${name}/build PROPERTIES TIMEOUT 900 LABELS slow FIXTURES_SETUP ${name})
    foreach(test ${tests})
        add_test(NAME ${name}/${test} COMMAND sh -c "exec ${run} '${build}/tests/test_${test}'")
        list(APPEND all ${name}/${test})
    endforeach()
    # the same logits: of a model made there, of that file read here, of a file of this machine's byte order read there
    add_test(NAME ${name}/tiny COMMAND sh -ec "
        cd '${build}'
        '$<TARGET_FILE:whole>' - - 24 here.logits
        ${run} tests/whole - - 24 there.logits there.gguf
        cmp here.logits there.logits
        '$<TARGET_FILE:whole>' there.gguf - 24 back.logits
        cmp here.logits back.logits")
    add_test(NAME ${name}/smollm2 COMMAND sh -ec "
        cd '${build}'
        '$<TARGET_FILE:whole>' '${smollm2}' - 3 here_smollm2.logits
        ${run} tests/whole '${smollm2}' - 3 there_smollm2.logits
        cmp here_smollm2.logits there_smollm2.logits")
    list(APPEND all ${name}/tiny ${name}/smollm2)
    set_tests_properties(${name}/build PROPERTIES COST 60)
    set_tests_properties(${name}/smollm2 PROPERTIES COST 40)
    set_tests_properties(${all} PROPERTIES TIMEOUT 300 LABELS slow FIXTURES_REQUIRED ${name} SKIP_RETURN_CODE 77)
endfunction()

if(I686_CC AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    machine(i686)
else()
    message(STATUS "32-bit machines are not tested here: i686-linux-gnu-gcc is missing")
endif()
if(S390X_CC AND S390X_RUN)
    machine(s390x ${S390X_RUN} -L /usr/s390x-linux-gnu)
else()
    message(STATUS "big-endian machines are not tested here: s390x-linux-gnu-gcc or qemu-s390x-static is missing")
endif()
