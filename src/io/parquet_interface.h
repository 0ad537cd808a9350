// The interface between libantisd_parquet.so (src/io/parquet) and the program: plain C, so that
// neither depends on the other's standard library, Arrow or JSON. Values are passed as events, in
// the order of JSON text: a row {"a": [1, null]} is
//   begin_struct, key "a", begin_list, integer 1, null, end_list, end_struct.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Text is UTF-8 with a length, valid only during the call. No event throws.
struct AntisdValueSink {
  void* context;
  void (*null_value)(void* context);
  void (*boolean)(void* context, int value);
  void (*integer)(void* context, int64_t value);
  void (*unsigned_integer)(void* context, uint64_t value);
  void (*number)(void* context, double value);
  void (*string)(void* context, const char* text, size_t size);
  void (*begin_list)(void* context);
  void (*end_list)(void* context);
  void (*begin_struct)(void* context);
  void (*key)(void* context, const char* text, size_t size);
  void (*end_struct)(void* context);
};

typedef struct AntisdParquetReader AntisdParquetReader;
typedef struct AntisdParquetWriter AntisdParquetWriter;

// Functions that can fail write the reason to `problem`, which has kAntisdProblemBytes bytes:
// truncated to fit and terminated by 0.
enum { kAntisdProblemBytes = 1000 };

struct AntisdParquetLibrary {
  int version;  // kAntisdParquetVersion of the library

  // Null on failure.
  AntisdParquetReader* (*open_reader)(const char* path, char* problem);
  int64_t (*row_count)(const AntisdParquetReader* reader);
  // 1: the next row's events were sent; 0: the end; -1: the file is broken.
  int (*next_row)(AntisdParquetReader* reader, const struct AntisdValueSink* sink, char* problem);
  void (*close_reader)(AntisdParquetReader* reader);

  // Writes to a copy of `descriptor`. The first row sent to sink() is an example that defines the
  // schema and is not written: null, false, 0, 0.0, "", a list with one element, a struct. The
  // following rows have the same structure, with null allowed anywhere and every key in the same
  // order.
  AntisdParquetWriter* (*open_writer)(int descriptor, char* problem);
  const struct AntisdValueSink* (*sink)(AntisdParquetWriter* writer);
  // Call it after every row; 0, or -1 if the row cannot be written.
  int (*end_row)(AntisdParquetWriter* writer, char* problem);
  int (*finish)(AntisdParquetWriter* writer, char* problem);
  void (*close_writer)(AntisdParquetWriter* writer);
};

enum { kAntisdParquetVersion = 1 };

// The library's only exported symbol.
__attribute__((visibility("default"))) const struct AntisdParquetLibrary* antisd_parquet_library(
    void);

#ifdef __cplusplus
}
#endif
