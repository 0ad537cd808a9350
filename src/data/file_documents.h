// Documents in files: .txt (one document per file), .jsonl with {"text"} or {"messages"} (one
// document per row), .json and Parquet likewise.
#pragma once

#include "data/documents.h"

namespace antisd::inline data {

// Text, each document with its end token, is laid end to end and cut into pieces of `max_tokens`,
// so that only the last piece is shorter; every token of a piece but its first counts. Chats stay
// whole; longer ones are left out, and `report` says how many. All files are text, or all are
// chats. InputError naming file and line.
std::vector<TrainingDocument> read_documents(const std::vector<std::string>& files,
                                             const DocumentText& text, std::int64_t max_tokens,
                                             const std::function<void(const std::string&)>& report);

}  // namespace antisd::inline data
