// Where this program lies, and with it what it loads: its own libraries, the shipped model, and the
// libraries of Python packages. Python itself is started only if a package is in no usual place.
//
//   for (const std::filesystem::path& folder : own_folders())
//     if (std::filesystem::exists(folder / "libantisd_parquet.so")) break;
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace antisd::inline io {

// The path of this program, links resolved.
std::filesystem::path own_program();

// The folders that may hold what belongs to the program, in the order of the search: its own (as
// built), lib beside it (a bundle), and ../lib/antisd (a wheel puts the program into bin).
std::vector<std::filesystem::path> own_folders(const std::filesystem::path& program);
std::vector<std::filesystem::path> own_folders();

// The folder of a Python package that is installed where `program` is: in the same virtual
// environment or prefix, else where that environment's python3, else the first python3 of PATH,
// would import it from. The package itself is not imported.
std::optional<std::filesystem::path> find_python_package(const std::string& name,
                                                         const std::filesystem::path& program);
std::optional<std::filesystem::path> find_python_package(const std::string& name);

}  // namespace antisd::inline io
