# Precompiled headers of libraries. A source file still includes everything that it uses: the fuzz preset and clang-tidy
# compile without them (MUSTER_PCH=OFF).
#
# muster_pch(NAME name [LIBS …] HEADERS …) declares a set of headers; muster_use_pch(target name) makes the sources of
# `target` start from it. Both have the same compile options then. A source file with options of its own needs
# SKIP_PRECOMPILE_HEADERS.

option(MUSTER_PCH "Precompile the headers of libraries (g++ only)" ON)

function(muster_pch)
  cmake_parse_arguments(ARG "" "NAME" "LIBS;HEADERS" ${ARGN})
  if(NOT MUSTER_PCH OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  # A target with precompiled headers needs a source file.
  set(source ${CMAKE_BINARY_DIR}/generated/pch/${ARG_NAME}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${ARG_NAME} OBJECT ${source})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_LIBS})
  # Only headers of libraries, in <>: every checkout compiles the same text, so ccache hits.
  list(TRANSFORM ARG_HEADERS REPLACE "^.+$" "<\\0>")
  target_precompile_headers(${ARG_NAME} PRIVATE ${ARG_HEADERS})
endfunction()

function(muster_use_pch target name)
  if(TARGET ${name})
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# Several source files of a module compiled as one: a header and its templates are compiled once for all of them. Names
# in their anonymous namespaces must differ. A build from nothing takes half the time; one after a small change takes
# longer.
option(MUSTER_UNITY "Compile source files of a module in batches" OFF)

# The linker can omit each function: the agent is linked without libraries that only other functions of its modules need.
add_compile_options(-ffunction-sections -fdata-sections)

# Replaces the sources of `target` by files that include eight of them each. CMake's own UNITY_BUILD writes absolute paths
# into these files, so ccache would not hit in another checkout. A source file with compile options of its own is left
# out.
function(muster_use_unity target)
  if(NOT MUSTER_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(left "")
  set(batches "")
  set(count 0)
  foreach(source IN LISTS sources)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(options OR IS_ABSOLUTE ${source})
      list(APPEND left ${source})
      continue()
    endif()
    math(EXPR batch "${count} / 8")
    math(EXPR count "${count} + 1")
    if(NOT batch IN_LIST batches)
      list(APPEND batches ${batch})
      set(text_${batch} "")
    endif()
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    string(APPEND text_${batch} "#include \"${name}\"\n")
  endforeach()
  foreach(batch IN LISTS batches)
    set(file ${CMAKE_BINARY_DIR}/generated/unity/${target}_${batch}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text_${batch}}" @ONLY)
    list(APPEND left ${file})
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${left}")
endfunction()

set(MUSTER_PCH_HEADERS
  algorithm array atomic cerrno cmath condition_variable cstddef cstdint cstdio cstdlib cstring deque filesystem fstream functional
  iterator limits map memory mutex numeric optional random set stop_token string string_view system_error thread tuple
  unordered_map utility variant vector
  absl/base/thread_annotations.h absl/functional/function_ref.h absl/status/status.h absl/status/statusor.h
  absl/strings/ascii.h absl/strings/escaping.h absl/strings/match.h absl/strings/numbers.h absl/strings/str_cat.h
  absl/strings/str_format.h absl/strings/str_join.h absl/strings/str_replace.h absl/strings/str_split.h
  absl/strings/string_view.h absl/strings/strip.h absl/synchronization/mutex.h absl/synchronization/notification.h
  absl/time/clock.h absl/time/time.h absl/types/span.h
  nlohmann/json.hpp)

muster_pch(NAME muster_pch HEADERS ${MUSTER_PCH_HEADERS}
  LIBS absl::function_ref absl::span absl::statusor absl::str_format absl::synchronization nlohmann_json::nlohmann_json)
if(BUILD_TESTING)
  muster_pch(NAME muster_test_pch HEADERS ${MUSTER_PCH_HEADERS} gmock/gmock.h gtest/gtest.h
    LIBS absl::function_ref absl::span absl::statusor absl::str_format absl::synchronization nlohmann_json::nlohmann_json
         GTest::gmock)
endif()
# gRPC adds -pthread, which a precompiled header must have been compiled with.
muster_pch(NAME muster_grpc_pch HEADERS ${MUSTER_PCH_HEADERS}
  LIBS absl::function_ref absl::span absl::statusor absl::str_format absl::synchronization nlohmann_json::nlohmann_json
       gRPC::grpc++)
if(MUSTER_TRAINER)
  muster_pch(NAME muster_torch_pch HEADERS ${MUSTER_PCH_HEADERS} ATen/ATen.h torch/types.h
    LIBS absl::function_ref absl::span absl::statusor absl::str_format absl::synchronization nlohmann_json::nlohmann_json
         gRPC::grpc++ torch)
endif()
