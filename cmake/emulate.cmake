# AVX-512 kernels on machines without AVX-512: the same sources over SIMDe (tests/emulate/), held against the portable kernels
# by the same tests. Needs SIMDe's headers, and AVX2 to run.
include(CheckIncludeFile)
if(ARENITE_SANITIZE)        # SIMDe's own arithmetic overflows
    return()
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    return()
endif()
check_include_file(simde/x86/avx512.h HAVE_SIMDE)
if(NOT HAVE_SIMDE)
    message(STATUS "AVX-512 kernels are compiled but not tested here: SIMDe's headers are missing")
    return()
endif()

file(GLOB sources CONFIGURE_DEPENDS src/backends/cpu/kernels/*.c)
function(emulated_kernels isa)              # emulated_kernels(ISA [DEFINITION...])
    add_library(ggml_${isa} OBJECT ${sources})
    target_include_directories(ggml_${isa} SYSTEM PRIVATE tests/emulate)
    target_compile_definitions(ggml_${isa} PRIVATE ISA=${isa} SIMD="avx512.h" SIMD_INT="avx512_int.h" ${ARGN})
    target_compile_options(ggml_${isa} PRIVATE -O1 -mavx2 -mfma -mf16c -mbmi2 -Wno-psabi
        -include ${PROJECT_SOURCE_DIR}/tests/emulate/emulated.h)
    target_link_libraries(ggml_${isa} PRIVATE ggml_private)
    set_target_properties(ggml_${isa} PROPERTIES EMULATED TRUE)         # they take longer to compile than to run
endfunction()
emulated_kernels(emulated)
emulated_kernels(emulated_vnni EMULATED_VNNI)

function(emulated_program name library)     # emulated_program(NAME LIBRARY SOURCE...)
    add_executable(${name} ${ARGN} tests/emulate/levels.c)
    target_compile_options(${name} PRIVATE -include ${PROJECT_SOURCE_DIR}/tests/emulate/emulated.h)
    target_link_options(${name} PRIVATE -Wl,--wrap=cpu_level_present,--wrap=cpu_kernels_at,--wrap=cpu_kernels)
    target_link_libraries(${name} PRIVATE ${library})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()

foreach(name float attention quant_dot quant_rows)
    emulated_program(test_emulate_${name} ggml_inside tests/cpu/${name}.c $<TARGET_OBJECTS:ggml_emulated>)
    add_test(NAME emulate/avx512_${name} COMMAND test_emulate_${name})
    set_tests_properties(emulate/avx512_${name} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()

emulated_program(test_emulate_vnni ggml_inside tests/cpu/quant_dot.c $<TARGET_OBJECTS:ggml_emulated> $<TARGET_OBJECTS:ggml_emulated_vnni>)
target_compile_definitions(test_emulate_vnni PRIVATE WITH_VNNI)
add_test(NAME emulate/vnni_quant_dot COMMAND test_emulate_vnni)
set_tests_properties(emulate/vnni_quant_dot PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)

# whole models: the same logits, byte for byte, as at the level of this machine
if(TARGET whole)
    emulated_program(whole_avx512 llama_inside tests/emulate/whole.c $<TARGET_OBJECTS:ggml_emulated>)
    emulated_program(whole_vnni   llama_inside tests/emulate/whole.c $<TARGET_OBJECTS:ggml_emulated>
        $<TARGET_OBJECTS:ggml_emulated_vnni>)
    target_compile_definitions(whole_vnni PRIVATE WITH_VNNI)
    foreach(set avx512 vnni)
        #        name       file                                                tokens
        foreach(row "tiny    -                                                   24"
                    "smollm2 ${PROJECT_SOURCE_DIR}/models/smollm2-135m.gguf      6"
                    "gemma3  ${PROJECT_SOURCE_DIR}/models/gemma3-270m.gguf       6")
            separate_arguments(row UNIX_COMMAND "${row}")
            list(GET row 0 name)
            list(GET row 1 file)
            list(GET row 2 n)
            add_test(NAME emulate/${set}_${name} COMMAND sh -ec "
                cd '${PROJECT_BINARY_DIR}/tests'
                ./whole        '${file}' - ${n} ${set}_${name}.native
                ./whole_${set} '${file}' - ${n} ${set}_${name}.emulated
                cmp ${set}_${name}.native ${set}_${name}.emulated
                rm  ${set}_${name}.native ${set}_${name}.emulated")
            set_tests_properties(emulate/${set}_${name} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
        endforeach()
    endforeach()
endif()
