# What single tests need beyond tests.cmake.
include(ProcessorCount)
ProcessorCount(cores)                       # for builds that are tests: make alone would run one job at a time
if(cores LESS 1)
    set(cores 1)
endif()

# instruction sets that this machine may lack
include(cmake/emulate.cmake)
include(cmake/neon.cmake)
include(cmake/machines.cmake)

# installed trees, real memory, threads by the hundred thousand
include(cmake/proofs.cmake)

# allocations counted, and made to fail, by the test itself
if(TARGET test_core_gallocr)
    target_link_options(test_core_gallocr PRIVATE
        -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc)
endif()

# every public header alone, and the layouts of all of them, in each language that programs are written in
include(CheckLanguage)
check_language(CXX)
set(header_languages "C 11" "C 17")
if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
    list(APPEND header_languages "CXX 17")
endif()
file(GLOB public_headers CONFIGURE_DEPENDS include/*.h)
foreach(row ${header_languages})
    separate_arguments(row)
    list(GET row 0 language)
    list(GET row 1 standard)
    string(REPLACE "CXX" "cpp" suffix ${language})
    string(TOLOWER ${suffix} suffix)
    set(sources)
    foreach(header ${public_headers})
        get_filename_component(name ${header} NAME_WE)
        set(source ${PROJECT_BINARY_DIR}/headers/${name}_${standard}.${suffix})
        file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${name}.h\"\ntypedef int ${language}${standard};\n")
        list(APPEND sources ${source})
    endforeach()
    set(source ${PROJECT_BINARY_DIR}/headers/layouts_${standard}.${suffix})
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"core/abi.c\"\n")
    add_library(headers_${suffix}${standard} OBJECT ${sources} ${source})
    target_include_directories(headers_${suffix}${standard} PRIVATE include tests src/core src/quant)
    target_compile_definitions(headers_${suffix}${standard} PRIVATE _POSIX_C_SOURCE=200809L main=layouts_${standard}
        GGML_SHARED LLAMA_SHARED)
    target_compile_options(headers_${suffix}${standard} PRIVATE -Wall -Wextra -Wpedantic -Werror)
    set_target_properties(headers_${suffix}${standard} PROPERTIES ${language}_STANDARD ${standard}
        ${language}_STANDARD_REQUIRED ON ${language}_EXTENSIONS OFF)
endforeach()

# threads counted by the test itself (tests/interpose.h)
foreach(test cpu_threads cpu_compute core_sched core_meta core_backend train_opt model_memory model_train model_grammar)
    if(TARGET test_${test})
        target_link_options(test_${test} PRIVATE -Wl,--wrap=pthread_create)
    endif()
endforeach()

# what the shared objects export is what the headers declare
if(BUILD_SHARED_LIBS AND CMAKE_NM AND NOT ARENITE_SANITIZE)
    set(shared_objects "$<TARGET_FILE:ggml>")
    if(TARGET llama)
        string(APPEND shared_objects " $<TARGET_FILE:llama>")
    endif()
    add_test(NAME core/symbols COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} "-DLIBRARIES=${shared_objects}"
        -DSOURCE=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/tests/core/symbols.cmake)
endif()

# backends in shared objects:  file name    name         further definitions
set(plugins                    "rpc         rpc          VERSION=2"
                               "metal       metal        VERSION=1"
                               "musa        musa         VERSION=2 WITHOUT_INIT"
                               "sycl-none   sycl_none    VERSION=2 SCORE=0"
                               "sycl-poor   sycl_poor    VERSION=2 SCORE=3"
                               "sycl-good   sycl_good    VERSION=2 SCORE=7")
foreach(row ${plugins})
    separate_arguments(row UNIX_COMMAND "${row}")
    list(POP_FRONT row file name)
    string(REPLACE "_" " " name ${name})
    add_library(plugin-${file} MODULE tests/plugin/plugin.c)
    target_compile_definitions(plugin-${file} PRIVATE GGML_SHARED "PLUGIN=\"${name}\"" ${row})
    target_include_directories(plugin-${file} PRIVATE include src/core)
    target_link_libraries(plugin-${file} PRIVATE arenite_flags)
    set_target_properties(plugin-${file} PROPERTIES OUTPUT_NAME ggml-${file}
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/plugins)
    add_dependencies(test_core_plugin plugin-${file})
endforeach()
target_compile_definitions(test_core_plugin PRIVATE PLUGIN_DIR="${PROJECT_BINARY_DIR}/tests/plugins")

# the command line tool: commands, what they print, and their exit codes
if(TARGET arenite)
    add_executable(tool_models tests/tools/models.c)
    set_target_properties(tool_models PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_include_directories(tool_models PRIVATE tests)
    target_link_libraries(tool_models PRIVATE llama arenite_flags m)
    add_test(NAME tools/cli COMMAND ${PROJECT_SOURCE_DIR}/tests/tools/transcript.sh $<TARGET_FILE:arenite>
        $<TARGET_FILE:tool_models> ${PROJECT_SOURCE_DIR}/tests/tools/cli.transcript)
    set_tests_properties(tools/cli PROPERTIES TIMEOUT 300)
endif()

# size, dependencies, and the direction of includes
if(BUILD_SHARED_LIBS AND CMAKE_STRIP AND CMAKE_READELF AND NOT ARENITE_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
    add_test(NAME core/size COMMAND ${CMAKE_COMMAND} -DSTRIP=${CMAKE_STRIP} -DREADELF=${CMAKE_READELF} -DLIBRARY=$<TARGET_FILE:ggml>
        -DBINARY=${PROJECT_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/tests/core/size.cmake)
endif()

include(cmake/dropin.cmake)

# documents: their code is built and run against an installed tree; the reference is what the headers say
if(BUILD_SHARED_LIBS AND TARGET arenite AND NOT ARENITE_SANITIZE)
    add_test(NAME docs/run COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/docs/run.py ${PROJECT_BINARY_DIR})
    add_test(NAME docs/reference COMMAND python3 ${PROJECT_SOURCE_DIR}/scripts/reference.py --check)
    set_tests_properties(docs/run docs/reference PROPERTIES LABELS slow TIMEOUT 600)
endif()

# the binary interface against that of the last release
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64" AND NOT ARENITE_SANITIZE)
    add_library(interface_surface MODULE tests/dropin/surface.c)
    target_include_directories(interface_surface PRIVATE include src/core tests/core)
    target_compile_definitions(interface_surface PRIVATE GGML_SHARED GGML_BUILD LLAMA_SHARED _POSIX_C_SOURCE=200809L)
    target_compile_options(interface_surface PRIVATE -g -O0 -w)
    set_target_properties(interface_surface PROPERTIES C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_test(NAME dropin/gate COMMAND ${PROJECT_SOURCE_DIR}/tests/dropin/gate ${PROJECT_SOURCE_DIR}/tests/dropin/release.abi.xz
        $<TARGET_FILE:interface_surface> ${PROJECT_BINARY_DIR}/tests)
    set_tests_properties(dropin/gate PROPERTIES SKIP_RETURN_CODE 77)
endif()
