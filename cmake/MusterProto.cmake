# muster_proto(TARGET name FILES a.proto …)
#
# Declares the library `name` of the messages in proto/a.proto …, which are included as "proto/a.pb.h" and
# import each other as "proto/b.proto". Link it to the modules that use them.

function(muster_proto)
  cmake_parse_arguments(ARG "" "TARGET" "FILES" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "muster_proto(${ARG_TARGET}): unexpected ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  set(out ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})

  # Any of them may import any other.
  list(TRANSFORM ARG_FILES PREPEND ${PROJECT_SOURCE_DIR}/proto/ OUTPUT_VARIABLE inputs)
  set(sources "")
  foreach(file IN LISTS ARG_FILES)
    get_filename_component(name ${file} NAME_WLE)
    set(generated ${out}/proto/${name}.pb.cc ${out}/proto/${name}.pb.h)
    add_custom_command(
      OUTPUT ${generated}
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${out} proto/${file}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      DEPENDS ${inputs}
      VERBATIM)
    list(APPEND sources ${generated})
  endforeach()

  add_library(${ARG_TARGET} STATIC ${sources})
  # Generated code is excluded from warnings and clang-tidy.
  target_include_directories(${ARG_TARGET} SYSTEM PUBLIC $<BUILD_INTERFACE:${out}>)
  target_compile_options(${ARG_TARGET} PRIVATE -w)
  target_link_libraries(${ARG_TARGET} PUBLIC protobuf::libprotobuf)
endfunction()
