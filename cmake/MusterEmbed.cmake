# muster_embed(MODULE HEADER ARRAY FOLDER [PATHS] FILE…): the files of FOLDER in that array of generated/MODULE/HEADER. They are kept as files, so
# that people and tests can read and use them, and compiled in. An entry's name is that of the file without its extension or, after PATHS, its path
# in FOLDER. Call it before muster_module().
function(muster_embed module header array folder)
  set(entries "")
  cmake_parse_arguments(ARG "PATHS" "" "" ${ARGN})
  foreach(name IN LISTS ARG_UNPARSED_ARGUMENTS)
    set(file ${PROJECT_SOURCE_DIR}/${folder}/${name})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    get_filename_component(stem ${name} NAME_WLE)
    if(ARG_PATHS)
      set(stem ${name})
    endif()
    string(APPEND entries "    {\"${stem}\", R\"file(${text})file\"},\n")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/embedded_files.h.in ${CMAKE_BINARY_DIR}/generated/${module}/${header} @ONLY)
endfunction()
