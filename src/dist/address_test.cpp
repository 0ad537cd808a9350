#include "dist/address.h"

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline dist {
namespace {

TEST(Address, IsThatOfTheInterfaceThatLeadsThere) {
  EXPECT_EQ(address_towards("127.0.0.1", 29500, 0), "127.0.0.1");
  EXPECT_THAT(address_towards("localhost", 29500, 0), ::testing::AnyOf("127.0.0.1", "::1"));
}

TEST(Address, AnUnknownHostIsNamed) {
  EXPECT_THAT(testing::error_of([] { address_towards("no-such-host.invalid", 29500, 0); }),
              ::testing::AllOf(::testing::HasSubstr("'no-such-host.invalid', is not known here"),
                               ::testing::HasSubstr("MASTER_ADDR")));
}

}  // namespace
}  // namespace antisd::inline dist
