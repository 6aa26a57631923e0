// SPDX-License-Identifier: Apache-2.0
#include "acc/store/peer_user.hpp"

#include <sys/fsuid.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "support/catch.hpp"
#include "support/skip.hpp"

namespace peer_user_test {

using boost::asio::ip::tcp;

namespace {

// Both ends of a connection on `address`, made by user `caller`.
struct Pair {
  Pair(const boost::asio::ip::address& listening, const boost::asio::ip::address& called, uid_t user) {
    tcp::acceptor acceptor(loop, {listening, 0});
    ::setfsuid(user);
    caller.open(called.is_v4() ? tcp::v4() : tcp::v6());
    ::setfsuid(::geteuid());
    caller.connect({called, acceptor.local_endpoint().port()});
    acceptor.accept(accepted);
  }

  boost::asio::io_context loop{1};
  tcp::socket caller{loop};
  tcp::socket accepted{loop};
};

void check(const std::string& listening, const std::string& called) {
  const auto address = [](const std::string& text) { return boost::asio::ip::make_address(text); };
  const Pair same_user(address(listening), address(called), ::geteuid());
  CHECK(acc::launcher::user_of_peer(same_user.accepted) == ::geteuid());
  CHECK(acc::launcher::may_be_own_user(same_user.accepted));
  if (::geteuid() != 0) {
    acc::test::skip("this user is not root");
    return;
  }
  constexpr uid_t kNobody = 65534;
  const Pair other_user(address(listening), address(called), kNobody);
  CHECK(acc::launcher::user_of_peer(other_user.accepted) == kNobody);
  CHECK_FALSE(acc::launcher::may_be_own_user(other_user.accepted));
}

}  // namespace

TEST_CASE("peer user: the user at the other end is known, for v4, v6, and v4 in v6", "[store]") {
  check("127.0.0.1", "127.0.0.1");
  check("::1", "::1");
  check("::", "127.0.0.1");
}

TEST_CASE("peer user: whoever has closed the other end belongs to no known user, and is not taken for root",
          "[store]") {
  const auto loopback = GENERATE(as<std::string>(), "127.0.0.1", "::1");
  const auto address = boost::asio::ip::make_address(loopback);
  Pair pair(address, address, ::geteuid());
  pair.caller.send(boost::asio::buffer("x", 1));
  SECTION("for writing, and its process may still be asked") {
    pair.caller.shutdown(tcp::socket::shutdown_send);
    CHECK(acc::launcher::user_of_peer(pair.accepted) == ::geteuid());
    CHECK(acc::launcher::may_be_own_user(pair.accepted));
  }
  SECTION("whole") {
    pair.caller.close();
    CHECK(acc::launcher::user_of_peer(pair.accepted) == std::nullopt);
    CHECK_FALSE(acc::launcher::may_be_own_user(pair.accepted));
  }
}

TEST_CASE("peer user: a closed connection has no known user", "[store]") {
  Pair pair(boost::asio::ip::address_v4::loopback(), boost::asio::ip::address_v4::loopback(), ::geteuid());
  SECTION("here") {
    pair.accepted.close();
  }
  SECTION("at the other end, by a reset") {
    pair.caller.set_option(boost::asio::socket_base::linger(true, 0));
    pair.caller.close();
  }
  CHECK(acc::launcher::user_of_peer(pair.accepted) == std::nullopt);
  CHECK_FALSE(acc::launcher::may_be_own_user(pair.accepted));
}

}  // namespace peer_user_test
