# Our objects in the place of the peer's, and each library's CPU backend as a plugin of the other. PEER_PYTHON names a Python
# with llama-cpp-python; without it what needs it is skipped.
if(NOT BUILD_SHARED_LIBS OR ARENITE_SANITIZE OR NOT TARGET ggml-arenite)
    return()
endif()
add_library(plugin-peer MODULE tests/plugin/peer.c)
target_compile_definitions(plugin-peer PRIVATE GGML_SHARED)
target_include_directories(plugin-peer PRIVATE include src/core)
target_link_libraries(plugin-peer PRIVATE arenite_flags ${CMAKE_DL_LIBS})
set_target_properties(plugin-peer PROPERTIES OUTPUT_NAME ggml-peer LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/plugins)

add_executable(dropin_compare tests/dropin/compare.c)
target_include_directories(dropin_compare PRIVATE tests)
target_link_libraries(dropin_compare PRIVATE ggml arenite_flags m)
set_target_properties(dropin_compare PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    add_test(NAME dropin/amalgamation COMMAND ${PROJECT_SOURCE_DIR}/tests/dropin/amalgamation ${PROJECT_BINARY_DIR})
    set_tests_properties(dropin/amalgamation PROPERTIES LABELS slow TIMEOUT 1200 COST 60)     # one compiler works on all of it
endif()
add_test(NAME dropin/plugin COMMAND dropin_compare $<TARGET_FILE:ggml-arenite> exact)
foreach(case plugin-in-peer peer-plugin models tensor own-tests)
    add_test(NAME dropin/${case} COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/dropin/dropin.py ${case} ${PROJECT_BINARY_DIR})
    set_tests_properties(dropin/${case} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600
        ENVIRONMENT "ARENITE_MODELS=${PROJECT_SOURCE_DIR}/models")
endforeach()
set_tests_properties(dropin/models dropin/own-tests PROPERTIES LABELS slow)
set_tests_properties(dropin/own-tests PROPERTIES TIMEOUT 1800)      # it fetches some 150 MB, once
