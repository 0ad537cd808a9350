// Finds and loads libantisd_parquet.so once, when it is first needed.
#pragma once

#include <filesystem>
#include <string>

#include "io/parquet_interface.h"

namespace antisd::inline io {

// It lies beside the running program; the environment variable ANTISD_PARQUET_LIBRARY can name
// another file. InputError about `file`, the Parquet file in question, where there is none.
const AntisdParquetLibrary& load_parquet_library(const std::string& file);

// The same with the program's folder given, for tests; it remembers nothing.
const AntisdParquetLibrary& find_parquet_library(const std::filesystem::path& folder,
                                                 const std::string& file);

}  // namespace antisd::inline io
