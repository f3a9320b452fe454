# Libraries that show the interface and nothing else. Shared objects leave out what is hidden; a static library does not, since its
# objects need each other: on ELF they are linked into one, in which hidden names become its own. Elsewhere, with sanitizers and
# with link-time optimisation, the names of a static library stay visible.
set(one_object OFF)
if(NOT BUILD_SHARED_LIBS AND UNIX AND NOT APPLE AND CMAKE_OBJCOPY AND NOT ARENITE_SANITIZE AND NOT ARENITE_FUZZ
   AND NOT CMAKE_INTERPROCEDURAL_OPTIMIZATION AND NOT CMAKE_C_FLAGS MATCHES "-flto")
    set(one_object ON)
endif()
set(exports OFF)
if(BUILD_SHARED_LIBS OR one_object)
    set(exports ON)
endif()

function(arenite_library target objects)
    if(NOT one_object)
        add_library(${target} ${objects})
        return()
    endif()
    separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
    set(one ${PROJECT_BINARY_DIR}/${target}.o)
    add_custom_command(OUTPUT ${one} DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM COMMENT "Linking ${target}.o, hidden names inside"
        COMMAND ${CMAKE_C_COMPILER} ${flags} -r -nostdlib -o ${one} ${objects}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${one})
    add_library(${target} STATIC ${one})
    set_source_files_properties(${one} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
endfunction()
