# antisd_list_architectures(TARGET FILE...): each FILE, NAME.cpp, defines NAME_architecture(); this
# writes architectures() of model/architecture.h, which names them all. A static library drops
# objects that nobody refers to, so a file cannot register itself.
function(antisd_list_architectures target)
  set(declarations "")
  set(names "")
  foreach(file ${ARGN})
    get_filename_component(name "${file}" NAME_WE)
    string(APPEND declarations "const ArchitectureSpec& ${name}_architecture();\n")
    list(APPEND names "&${name}_architecture()")
  endforeach()
  list(JOIN names ", " names)
  set(generated "${CMAKE_BINARY_DIR}/generated/architectures.cpp")
  file(CONFIGURE OUTPUT "${generated}" @ONLY CONTENT
    "#include \"model/architecture.h\"

namespace antisd::inline model {

@declarations@
const std::vector<const ArchitectureSpec*>& architectures() {
  static const std::vector<const ArchitectureSpec*> known = {@names@};
  return known;
}

}  // namespace antisd::inline model
")
  target_sources(${target} PRIVATE "${generated}")
endfunction()
