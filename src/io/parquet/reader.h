// A Parquet file as a sequence of rows; the reading half of parquet_interface.h.
#pragma once

#include <memory>
#include <string>

#include <arrow/api.h>
#include <arrow/memory_pool.h>
#include <parquet/arrow/reader.h>

#include "io/parquet_interface.h"

// Throws arrow's or parquet's exceptions; library.cpp turns them into text.
struct AntisdParquetReader {
 public:
  explicit AntisdParquetReader(const std::string& path)
      : AntisdParquetReader(path, most_bytes(path)) {}

  std::int64_t row_count() const { return row_count_; }
  bool next_row(const AntisdValueSink& sink);

 private:
  AntisdParquetReader(const std::string& path, std::int64_t most_bytes);
  // Limit on the reader's memory for a file of this size: a header of a kilobyte can claim
  // gigabytes.
  static std::int64_t most_bytes(const std::string& path);

  // Declared before the members that allocate from them. The first counts only this reader's bytes.
  arrow::ProxyMemoryPool own_{arrow::default_memory_pool()};
  arrow::CappedMemoryPool pool_;
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::int64_t row_in_batch_ = 0;
  std::int64_t row_count_ = 0;
};
