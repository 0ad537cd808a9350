// The address at which the other ranks reach this process.
//
//   const std::string address = address_towards("node1", 29500, 300);  // "10.0.0.7"
#pragma once

#include <string>

namespace antisd::inline dist {

// The address of the interface that leads to `host`, as numbers. (What the machine's own name
// resolves to is often 127.0.1.1, which is nobody else's way.) A name that does not resolve is
// tried again for up to `wait_s` seconds, at most 20: it may belong to a node that is just
// starting. RunError after that, and where no interface leads there.
std::string address_towards(const std::string& host, int port, double wait_s);

}  // namespace antisd::inline dist
