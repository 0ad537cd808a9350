// The function table that the program loads; the functions do not throw.
#include <cstring>
#include <exception>
#include <string>

#include "io/parquet/reader.h"
#include "io/parquet/writer.h"

namespace {

void report(char* problem, const char* text) {
  std::strncpy(problem, text, kAntisdProblemBytes - 1);
  problem[kAntisdProblemBytes - 1] = '\0';
}

template <typename Result, typename Action>
Result guarded(char* problem, Result failure, Action&& action) {
  try {
    return action();
  } catch (const std::exception& error) {
    report(problem, error.what());
  } catch (...) {
    report(problem, "an unknown failure");
  }
  return failure;
}

AntisdParquetReader* open_reader(const char* path, char* problem) {
  return guarded<AntisdParquetReader*>(problem, nullptr,
                                       [&] { return new AntisdParquetReader(path); });
}

int64_t row_count(const AntisdParquetReader* reader) {
  return reader->row_count();
}

int next_row(AntisdParquetReader* reader, const AntisdValueSink* sink, char* problem) {
  return guarded(problem, -1, [&] { return reader->next_row(*sink) ? 1 : 0; });
}

void close_reader(AntisdParquetReader* reader) {
  delete reader;
}

AntisdParquetWriter* open_writer(int descriptor, char* problem) {
  return guarded<AntisdParquetWriter*>(problem, nullptr,
                                       [&] { return new AntisdParquetWriter(descriptor); });
}

const AntisdValueSink* sink(AntisdParquetWriter* writer) {
  return &writer->sink();
}

int end_row(AntisdParquetWriter* writer, char* problem) {
  return guarded(problem, -1, [&] { return writer->end_row(), 0; });
}

int finish(AntisdParquetWriter* writer, char* problem) {
  return guarded(problem, -1, [&] { return writer->finish(), 0; });
}

void close_writer(AntisdParquetWriter* writer) {
  delete writer;
}

constexpr AntisdParquetLibrary kLibrary = {
    .version = kAntisdParquetVersion,
    .open_reader = open_reader,
    .row_count = row_count,
    .next_row = next_row,
    .close_reader = close_reader,
    .open_writer = open_writer,
    .sink = sink,
    .end_row = end_row,
    .finish = finish,
    .close_writer = close_writer,
};

}  // namespace

const AntisdParquetLibrary* antisd_parquet_library() {
  return &kLibrary;
}
