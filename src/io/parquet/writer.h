// Rows -> a Parquet file; the writing half of parquet_interface.h. The first row's events define
// the schema, all others go to Arrow's builders.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/writer.h>

#include "io/parquet_interface.h"

namespace antisd::inline io::parquet_library {

// Events of an example value -> its Arrow type.
class SchemaSketch {
 public:
  void add(std::shared_ptr<arrow::DataType> type);
  void begin(bool is_struct) { open_.push_back({.is_struct = is_struct}); }
  void key(std::string name) { open_.back().key = std::move(name); }
  void end();
  const std::shared_ptr<arrow::DataType>& type() const { return type_; }

 private:
  struct Open {
    bool is_struct;
    std::string key{};
    arrow::FieldVector fields{};
  };
  std::vector<Open> open_;
  std::shared_ptr<arrow::DataType> type_;
};

}  // namespace antisd::inline io::parquet_library

struct AntisdParquetWriter {
 public:
  explicit AntisdParquetWriter(int descriptor);
  AntisdParquetWriter(const AntisdParquetWriter&) = delete;
  AntisdParquetWriter& operator=(const AntisdParquetWriter&) = delete;

  const AntisdValueSink& sink() const { return sink_; }
  void end_row();
  void finish();

 private:
  struct Open {
    arrow::ArrayBuilder* builder;
    int next_child = 0;
  };

  static AntisdValueSink make_sink(AntisdParquetWriter* writer);
  template <typename Builder, typename... Value>
  void append(const std::shared_ptr<arrow::DataType>& type, Value... value);
  arrow::ArrayBuilder* next_builder();
  void begin(bool is_struct);
  void end();
  void start_file();
  void flush_rows();

  AntisdValueSink sink_;
  std::shared_ptr<arrow::io::FileOutputStream> output_;
  std::unique_ptr<parquet::arrow::FileWriter> file_;
  antisd::parquet_library::SchemaSketch sketch_;
  std::unique_ptr<arrow::ArrayBuilder> root_;  // null during the example row
  std::vector<Open> open_;
  arrow::Status status_;  // the first failure of a row's events
  std::int64_t pending_rows_ = 0;
  std::int64_t pending_bytes_ = 0;
};
