// What a process prints into a pipe, written to standard error line by line with a prefix.
//
//   LineRelay relay(std::move(read_end), "rank 2: ");
//   while (!done()) relay.relay();
//   relay.finish();
#pragma once

#include <string>
#include <string_view>

#include "io/unique_fd.h"

namespace antisd::inline dist {

class LineRelay {
 public:
  // Of a pipe that does not wait (O_NONBLOCK); without one there is nothing to relay.
  LineRelay(UniqueFd pipe, std::string prefix);

  int descriptor() const { return pipe_.get(); }  // -1 after the end of the pipe

  void relay();   // the lines that are complete by now
  void finish();  // the rest too, without waiting for the end of the pipe

 private:
  void write_line(std::string_view line) const;

  UniqueFd pipe_;
  std::string prefix_;
  std::string pending_;  // the beginning of a line
};

}  // namespace antisd::inline dist
