# The shared objects export what the headers declare, nothing less and nothing more:
#   cmake -DNM=nm -DLIBRARIES="libggml.so libllama.so" -DSOURCE=<root> -P symbols.cmake
cmake_minimum_required(VERSION 3.18)
# declared for programs that are compiled against the whole interface, and not built: adapters, writing models
set(not_built "^(llama_opt_.*|llama_(set_)?adapter.*|\
llama_model_init_from_user)$")
# what a macro declares, one family for every type: (de)quantize_<type>
set(families "^(dequantize_row|quantize_row|quantize)_[a-z0-9_]+[KSM]?(_ref)?$")

set(declared)
foreach(header include/ggml.h include/ggml-alloc.h include/ggml-backend.h include/ggml-cpu.h include/ggml-opt.h include/gguf.h include/arenite.h
        include/llama.h src/core/core.h src/core/backend_impl.h)
    file(READ ${SOURCE}/${header} text)
    string(REGEX REPLACE "/\\*([^*]|\\*[^/])*\\*/" "" text "${text}")
    string(REGEX REPLACE "\n *#[^\n]*" "\n" text "\n${text}")
    string(REGEX MATCHALL "(GGML|GGML_BACKEND|LLAMA)_API [^(;{}]*[ *]([A-Za-z_0-9]+)\\(" found "${text}")
    foreach(call ${found})
        string(REGEX REPLACE ".*[ *]([A-Za-z_0-9]+)\\($" "\\1" name "${call}")
        list(APPEND declared ${name})
    endforeach()
endforeach()
list(REMOVE_DUPLICATES declared)
list(LENGTH declared n_declared)

set(exported)
separate_arguments(LIBRARIES)
foreach(library ${LIBRARIES})
    execute_process(COMMAND ${NM} -D --defined-only ${library} OUTPUT_VARIABLE text RESULT_VARIABLE failed)
    string(REGEX MATCHALL "[^\n ]+\n" found "${text}")
    string(REPLACE "\n" "" found "${found}")
    list(APPEND exported ${found})
    if(failed)
        message(FATAL_ERROR "${NM} ${library}: ${failed}")
    endif()
endforeach()
if(n_declared LESS 500)
    message(FATAL_ERROR "only ${n_declared} functions declared")
endif()

set(missing ${declared})
list(REMOVE_ITEM missing ${exported})
list(FILTER missing EXCLUDE REGEX ${not_built})
set(extra ${exported})
list(REMOVE_ITEM extra ${declared})
list(FILTER extra EXCLUDE REGEX ${families})
message("${n_declared} functions declared; missing: ${missing}; not declared: ${extra}")
if(missing OR extra)
    message(FATAL_ERROR "the exported symbols are not those of the headers")
endif()
