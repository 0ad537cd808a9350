// Finds and loads libantisd_parquet.so once, when it is first needed.
#pragma once

#include <filesystem>
#include <string>

#include "io/parquet_interface.h"

namespace antisd::inline io {

// It is where the program's files are (io/installation.h); the environment variable
// ANTISD_PARQUET_LIBRARY can name another file. If it or Arrow is missing, InputError about `file`,
// the Parquet file to open.
const AntisdParquetLibrary& load_parquet_library(const std::string& file);

// The same with the program's folder as an argument, for tests; nothing is cached.
const AntisdParquetLibrary& find_parquet_library(const std::filesystem::path& folder,
                                                 const std::string& file);

}  // namespace antisd::inline io
