#include "io/parquet/reader.h"

#include <filesystem>

#include <arrow/io/file.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include "io/parquet/emit.h"

namespace {

constexpr std::int64_t kBatchRows = 1024;
// Compressed text grows about tenfold, a repeated value much more.
constexpr std::int64_t kLeastCap = std::int64_t{256} << 20, kGrowth = 64;

std::unique_ptr<parquet::arrow::FileReader> open_file(const std::string& path,
                                                      arrow::MemoryPool* pool) {
  std::shared_ptr<arrow::io::ReadableFile> source;
  PARQUET_ASSIGN_OR_THROW(source, arrow::io::ReadableFile::Open(path, pool));
  parquet::ReaderProperties properties(pool);
  // Pages are read on demand, so a huge row group needs no more memory than a small one.
  properties.enable_buffered_stream();
  parquet::ArrowReaderProperties arrow_properties;
  arrow_properties.set_batch_size(kBatchRows);
  arrow_properties.set_pre_buffer(false);
  arrow_properties.set_use_threads(false);
  parquet::arrow::FileReaderBuilder builder;
  PARQUET_THROW_NOT_OK(builder.Open(source, properties));
  builder.properties(arrow_properties);
  builder.memory_pool(pool);
  std::unique_ptr<parquet::arrow::FileReader> file;
  PARQUET_THROW_NOT_OK(builder.Build(&file));
  return file;
}

}  // namespace

std::int64_t AntisdParquetReader::most_bytes(const std::string& path) {
  return kLeastCap + kGrowth * static_cast<std::int64_t>(std::filesystem::file_size(path));
}

AntisdParquetReader::AntisdParquetReader(const std::string& path, std::int64_t most_bytes)
    : pool_(&own_, most_bytes), file_(open_file(path, &pool_)) {
  std::shared_ptr<arrow::Schema> schema;
  PARQUET_THROW_NOT_OK(file_->GetSchema(&schema));
  for (const auto& field : schema->fields())
    PARQUET_THROW_NOT_OK(antisd::parquet_library::check_supported(*field->type(), field->name()));
  row_count_ = file_->parquet_reader()->metadata()->num_rows();
  PARQUET_ASSIGN_OR_THROW(batches_, file_->GetRecordBatchReader());
}

bool AntisdParquetReader::next_row(const AntisdValueSink& sink) {
  while (batch_ == nullptr || row_in_batch_ == batch_->num_rows()) {
    PARQUET_THROW_NOT_OK(batches_->ReadNext(&batch_));
    if (batch_ == nullptr) return false;
    PARQUET_THROW_NOT_OK(batch_->Validate());
    row_in_batch_ = 0;
  }
  sink.begin_struct(sink.context);
  for (int i = 0; i < batch_->num_columns(); ++i) {
    const std::string& name = batch_->schema()->field(i)->name();
    sink.key(sink.context, name.data(), name.size());
    antisd::parquet_library::emit(*batch_->column(i), row_in_batch_, sink);
  }
  sink.end_struct(sink.context);
  ++row_in_batch_;
  return true;
}
