// SPDX-License-Identifier: Apache-2.0
#include "acc/store/store.hpp"

#include <boost/asio/io_context.hpp>
#include <memory>

#include "acc/store/client.hpp"
#include "acc/store/file_store.hpp"
#include "acc/store/server.hpp"
#include "support/catch.hpp"
#include "support/drive.hpp"
#include "support/temporary_folder.hpp"

namespace store_test {

TEST_CASE("store: TCP and file answer alike", "[store]") {
  boost::asio::io_context loop;
  acc::test::TemporaryFolder folder;
  acc::launcher::StoreServer server(loop, {});
  std::unique_ptr<acc::launcher::Store> store;
  if (GENERATE(false, true)) {
    store = std::make_unique<acc::launcher::FileStore>(loop, folder.path() / "store");
  } else {
    auto client = std::make_unique<acc::launcher::StoreClient>(loop);
    client->connect({"127.0.0.1", server.port()}, acc::RunningClock::now() + std::chrono::seconds(30), {},
                    [](const auto&) {});
    store = std::move(client);
  }
  std::vector<std::string> results;
  const auto add_result = [&](const std::string& what) { results.push_back(what); };
  store->get("/a",
             [&](acc::launcher::StoreOutcome, const auto& value) { add_result(value.value_or("(none)")); });
  store->set("/a", "1", [&](acc::launcher::StoreOutcome) { add_result("set"); });
  store->get("/a",
             [&](acc::launcher::StoreOutcome, const auto& value) { add_result(value.value_or("(none)")); });
  acc::test::drive(loop, [&] { return results.size() == 3; });
  CHECK(results == std::vector<std::string>{"(none)", "set", "1"});

  const auto again = store->open_again(acc::RunningClock::now() + std::chrono::seconds(30),
                                       [&](const auto& error) { add_result(error ? "failed" : "opened"); });
  again->get_when_present(
      {"/a", "/b"}, std::chrono::seconds(60),
      [&](acc::launcher::StoreOutcome, const auto& values) { add_result(values.at(0) + values.at(1)); });
  store->set("/b", "2");
  acc::test::drive(loop, [&] { return results.size() == 5; });
  CHECK(results[3] == "opened");
  CHECK(results[4] == "12");
}

}  // namespace store_test
