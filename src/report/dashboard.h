// The report's page over HTTP, live, for all runs below a folder.
//
//   Dashboard dashboard({.folder = "runs"});
//   std::cout << dashboard.url();
//   dashboard.serve();  // until stop(), from any thread
//
// It only reads. There are three routes: / (the page), /api/update?since=VERSION&server=ID (what is
// new: run_set.h) and /api/samples?run=ID&step=N. None takes a path, and nothing outside the folder
// is opened, whatever links lie in it. On a loopback address a request must name a loopback host,
// so that no page from elsewhere can reach it under a name of its own; on any other address it must
// bear the token, as ?token= once and as a cookie from then on, or as "Authorization: Bearer".
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "report/run_set.h"

namespace antisd::inline report {

struct DashboardOptions {
  std::filesystem::path folder;
  std::string host = "127.0.0.1";
  int port = 8484;            // 0: a free one
  std::string token = {};     // generated where the host is not a loopback address
  double look_seconds = 1.0;  // between looks at the files
  RunSet::Compare compare = {};
};

class Dashboard {
 public:
  // Reads what is there and binds. InputError where there is no such folder, RunError where the
  // port cannot be had.
  explicit Dashboard(DashboardOptions options);
  ~Dashboard();

  int port() const;
  std::string url() const;  // with the token, where one is needed
  std::size_t runs() const;

  void serve();
  void stop();

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

bool is_loopback(const std::string& host);
// Takes the same time wherever the two differ.
bool equal_in_constant_time(const std::string& a, const std::string& b);

}  // namespace antisd::inline report
