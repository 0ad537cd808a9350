#include "io/parquet/writer.h"

#include <utility>

#include <parquet/exception.h>
#include <parquet/properties.h>
#include <unistd.h>

namespace antisd::inline io::parquet_library {

void SchemaSketch::add(std::shared_ptr<arrow::DataType> type) {
  if (open_.empty()) {
    type_ = std::move(type);
  } else {
    Open& open = open_.back();
    open.fields.push_back(arrow::field(open.is_struct ? open.key : "element", std::move(type)));
  }
}

void SchemaSketch::end() {
  Open open = std::move(open_.back());
  open_.pop_back();
  add(open.is_struct ? arrow::struct_(open.fields) : arrow::list(open.fields.front()));
}

}  // namespace antisd::inline io::parquet_library

namespace {

// A row group ends at the first limit reached; Arrow's string columns hold less than 2 GiB.
constexpr std::int64_t kGroupRows = 1 << 16;
constexpr std::int64_t kGroupBytes = 128 << 20;

AntisdParquetWriter& writer_of(void* context) {
  return *static_cast<AntisdParquetWriter*>(context);
}

}  // namespace

AntisdParquetWriter::AntisdParquetWriter(int descriptor) : sink_(make_sink(this)) {
  const int copy = ::dup(descriptor);  // Arrow closes its descriptor
  if (copy < 0) throw parquet::ParquetException("the file cannot be opened a second time");
  PARQUET_ASSIGN_OR_THROW(output_, arrow::io::FileOutputStream::Open(copy));
}

AntisdValueSink AntisdParquetWriter::make_sink(AntisdParquetWriter* writer) {
  return {
      .context = writer,
      .null_value = [](void* c) { writer_of(c).append<arrow::NullBuilder>(arrow::null()); },
      .boolean =
          [](void* c, int value) {
            writer_of(c).append<arrow::BooleanBuilder>(arrow::boolean(), value != 0);
          },
      .integer =
          [](void* c, std::int64_t value) {
            writer_of(c).append<arrow::Int64Builder>(arrow::int64(), value);
          },
      .unsigned_integer =
          [](void* c, std::uint64_t value) {
            writer_of(c).append<arrow::Int64Builder>(arrow::int64(),
                                                     static_cast<std::int64_t>(value));
          },
      .number =
          [](void* c, double value) {
            writer_of(c).append<arrow::DoubleBuilder>(arrow::float64(), value);
          },
      .string =
          [](void* c, const char* text, std::size_t size) {
            writer_of(c).pending_bytes_ += static_cast<std::int64_t>(size);
            writer_of(c).append<arrow::StringBuilder>(arrow::utf8(), std::string_view(text, size));
          },
      .begin_list = [](void* c) { writer_of(c).begin(false); },
      .end_list = [](void* c) { writer_of(c).end(); },
      .begin_struct = [](void* c) { writer_of(c).begin(true); },
      .key =
          [](void* c, const char* text, std::size_t size) {
            AntisdParquetWriter& self = writer_of(c);
            if (self.root_ == nullptr) self.sketch_.key({text, size});
          },
      .end_struct = [](void* c) { writer_of(c).end(); },
  };
}

template <typename Builder, typename... Value>
void AntisdParquetWriter::append(const std::shared_ptr<arrow::DataType>& type, Value... value) {
  if (root_ == nullptr) return sketch_.add(type);
  if (!status_.ok()) return;
  arrow::ArrayBuilder* builder = next_builder();
  if constexpr (sizeof...(value) == 0) {
    status_ = builder->AppendNull();
  } else {
    status_ = static_cast<Builder*>(builder)->Append(value...);
  }
}

arrow::ArrayBuilder* AntisdParquetWriter::next_builder() {
  if (open_.empty()) return root_.get();
  Open& open = open_.back();
  if (open.builder->type()->id() == arrow::Type::LIST) {
    return static_cast<arrow::ListBuilder*>(open.builder)->value_builder();
  }
  return open.builder->child(open.next_child++);
}

void AntisdParquetWriter::begin(bool is_struct) {
  if (root_ == nullptr) return sketch_.begin(is_struct);
  if (!status_.ok()) return;
  arrow::ArrayBuilder* builder = next_builder();
  status_ = is_struct ? static_cast<arrow::StructBuilder*>(builder)->Append()
                      : static_cast<arrow::ListBuilder*>(builder)->Append();
  open_.push_back({.builder = builder});
}

void AntisdParquetWriter::end() {
  if (root_ == nullptr) return sketch_.end();
  if (status_.ok()) open_.pop_back();
}

void AntisdParquetWriter::end_row() {
  if (root_ == nullptr) return start_file();
  PARQUET_THROW_NOT_OK(status_);
  if (++pending_rows_ >= kGroupRows || pending_bytes_ >= kGroupBytes) flush_rows();
}

void AntisdParquetWriter::start_file() {
  PARQUET_ASSIGN_OR_THROW(root_, arrow::MakeBuilder(sketch_.type()));
  const auto properties =
      parquet::WriterProperties::Builder().compression(parquet::Compression::SNAPPY)->build();
  PARQUET_ASSIGN_OR_THROW(
      file_, parquet::arrow::FileWriter::Open(*arrow::schema(sketch_.type()->fields()),
                                              arrow::default_memory_pool(), output_, properties));
  pending_bytes_ = 0;
}

void AntisdParquetWriter::flush_rows() {
  std::shared_ptr<arrow::Array> rows;
  PARQUET_ASSIGN_OR_THROW(rows, root_->Finish());
  std::shared_ptr<arrow::RecordBatch> batch;
  PARQUET_ASSIGN_OR_THROW(batch, arrow::RecordBatch::FromStructArray(rows));
  std::shared_ptr<arrow::Table> table;
  PARQUET_ASSIGN_OR_THROW(table, arrow::Table::FromRecordBatches({batch}));
  PARQUET_THROW_NOT_OK(file_->WriteTable(*table, kGroupRows));
  pending_rows_ = 0;
  pending_bytes_ = 0;
}

void AntisdParquetWriter::finish() {
  if (pending_rows_ > 0) flush_rows();
  PARQUET_THROW_NOT_OK(file_->Close());
  PARQUET_THROW_NOT_OK(output_->Close());
}
