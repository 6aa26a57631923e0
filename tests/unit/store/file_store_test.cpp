// SPDX-License-Identifier: Apache-2.0
#include "acc/store/file_store.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>

#include "acc/base/files.hpp"
#include "acc/store/file_log.hpp"
#include "support/catch.hpp"
#include "support/drive.hpp"
#include "support/temporary_folder.hpp"

namespace file_store_test {

namespace {

namespace asio = boost::asio;
using acc::RunningClock;
using acc::launcher::FileStore;
using acc::launcher::Store;
using acc::launcher::StoreOutcome;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Fixture {
  acc::test::TemporaryFolder folder = {};
  asio::io_context loop = {};
  std::filesystem::path path = folder.path() / "store";
  FileStore store{
      loop, path, {.timeout = milliseconds(100), .retry = milliseconds(1), .poll_interval = milliseconds(1)}};

  template <typename Value, typename Ask>
  Value answer(Ask ask, StoreOutcome wanted = StoreOutcome::done) {
    std::optional<Value> value;
    ask([&](StoreOutcome outcome, Value got) {
      CHECK(outcome == wanted);
      value = std::move(got);
    });
    acc::test::drive(loop, [&] { return value.has_value(); });
    return *value;
  }
  template <typename Ask>
  StoreOutcome outcome(Ask ask) {
    std::optional<StoreOutcome> result;
    ask([&](StoreOutcome outcome) { result = outcome; });
    acc::test::drive(loop, [&] { return result.has_value(); });
    return *result;
  }
  std::optional<std::string> get(Store& from, const std::string& key) {
    return answer<std::optional<std::string>>([&](auto handler) { from.get(key, handler); });
  }
  std::string compare_set(const std::string& expected, const std::string& desired) {
    return answer<std::string>([&](auto handler) { store.compare_set("/k", expected, desired, handler); });
  }
  acc::Descriptor locked() {
    acc::Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    REQUIRE(::flock(fd.get(), LOCK_EX) == 0);
    return fd;
  }
};

}  // namespace

TEST_CASE("file_store: operations answer as torch's stores do", "[store]") {
  Fixture f;
  CHECK(f.get(f.store, "/k") == std::nullopt);
  CHECK(f.compare_set("old", "new") == "old");
  CHECK(f.get(f.store, "/k") == std::nullopt);
  CHECK(f.compare_set("", "new") == "new");
  CHECK(f.compare_set("old", "x") == "new");
  CHECK(f.compare_set("new", "newer") == "newer");
  CHECK(f.answer<std::int64_t>([&](auto handler) { f.store.add("/n", 2, handler); }) == 2);
  CHECK(f.answer<std::int64_t>([&](auto handler) { f.store.add("/n", -5, handler); }) == -3);
  CHECK(f.answer<bool>([&](auto handler) { f.store.check({"/k", "/n"}, handler); }));
  CHECK(f.answer<bool>([&](auto handler) { f.store.delete_key("/n", handler); }));
  CHECK_FALSE(f.answer<bool>([&](auto handler) { f.store.delete_key("/n", handler); }));
  CHECK_FALSE(f.answer<bool>([&](auto handler) { f.store.check({"/k", "/n"}, handler); }));
}

TEST_CASE("file_store: each client sees what the others wrote", "[store]") {
  Fixture f;
  FileStore other(f.loop, f.path);
  f.store.multi_set({{"/a", "1"}, {"/b", std::string(3'000'000, 'x')}});
  f.store.set("/c", "3");
  CHECK(f.get(other, "/c") == "3");
  CHECK(f.get(other, "/b")->size() == 3'000'000);
  other.set("/a", "2");
  other.delete_key("/c", [](auto, bool) {});
  CHECK(f.get(other, "/a") == "2");
  CHECK(f.get(f.store, "/a") == "2");
  CHECK(f.get(f.store, "/c") == std::nullopt);
}

TEST_CASE("file_store: a wait ends when all keys exist, or at its timeout", "[store]") {
  Fixture f;
  FileStore other(f.loop, f.path);
  std::optional<std::vector<std::string>> values;
  f.store.get_when_present({"/a", "/b"}, seconds(60), [&](StoreOutcome, const auto& got) { values = got; });
  CHECK(f.outcome([&](auto handler) { other.set("/a", "1", handler); }) == StoreOutcome::done);
  CHECK(f.get(f.store, "/a") == "1");  // the wait delays no other operation
  CHECK_FALSE(values.has_value());
  other.set("/b", "2");
  acc::test::drive(f.loop, [&] { return values.has_value(); });
  CHECK(*values == std::vector<std::string>{"1", "2"});
  CHECK(f.outcome([&](auto handler) { f.store.wait({"/never"}, milliseconds(5), handler); }) ==
        StoreOutcome::timed_out);
}

TEST_CASE("file_store: a locked file is retried until the timeout", "[store]") {
  Fixture f;
  acc::Descriptor lock = f.locked();
  std::optional<StoreOutcome> outcome;
  f.store.set("/a", "1", [&](StoreOutcome got) { outcome = got; });
  asio::steady_timer unlock(f.loop, milliseconds(20));
  unlock.async_wait([&](const auto&) {
    CHECK_FALSE(outcome.has_value());
    lock.reset();
  });
  acc::test::drive(f.loop, [&] { return outcome.has_value(); });
  CHECK(*outcome == StoreOutcome::done);

  lock = f.locked();
  bool closed = false;
  f.store.on_closed([&] { closed = true; });
  CHECK(f.outcome([&](auto handler) { f.store.set("/a", "2", handler); }) == StoreOutcome::closed);
  CHECK(closed);
  CHECK(f.store.loss().what.find("locked") != std::string::npos);
  lock.reset();
  CHECK(f.outcome([&](auto handler) { f.store.set("/a", "2", handler); }) == StoreOutcome::closed);
}

TEST_CASE("file_store: nothing is appended to an incomplete entry", "[store]") {
  Fixture f;
  const std::string entry = acc::launcher::file_log_entry("/a", "1");
  f.folder.write("store", entry + acc::launcher::file_log_entry("/b", "2").substr(0, 7));
  CHECK(f.outcome([&](auto handler) { f.store.set("/c", "3", handler); }) == StoreOutcome::closed);
  CHECK(f.folder.read("store").size() == entry.size() + 7);
}

TEST_CASE("file_store: an entry that nobody completes is cut off", "[store]") {
  Fixture f;
  const std::string entry = acc::launcher::file_log_entry("/a", "1");
  const std::string cut = acc::launcher::file_log_entry("/b", "2").substr(0, GENERATE(2, 5, 10));
  FileStore store(f.loop, f.path, {.retry = milliseconds(1), .writing_time = milliseconds(5)});
  FileStore other(f.loop, f.path);
  f.folder.write("store", entry + cut);
  CHECK(f.get(store, "/a") == "1");
  CHECK(f.folder.read("store") == entry);
  store.set("/b", "3");
  CHECK(f.get(store, "/b") == "3");
  CHECK(f.get(other, "/b") == "3");
}

TEST_CASE("file_store: what may be another file is not cut off", "[store]") {
  Fixture f;
  const std::string content = GENERATE("7\n", "\n", "abc");
  FileStore store(f.loop, f.path,
                  {.timeout = seconds(60), .retry = milliseconds(1), .writing_time = milliseconds(5)});
  f.folder.write("store", content);
  CHECK(f.outcome([&](auto handler) { store.set("/a", "1", handler); }) == StoreOutcome::closed);
  CHECK(store.loss().what == "is not a file of torch's FileStore");
  CHECK(f.folder.read("store") == content);
}

TEST_CASE("file_store: a first entry that is being written is waited for", "[store]") {
  Fixture f;
  FileStore store(f.loop, f.path, {.retry = milliseconds(1), .writing_time = milliseconds(0)});
  const std::string entry = acc::launcher::file_log_entry("/a", "1");
  acc::Descriptor writer = f.locked();
  REQUIRE(acc::write_all(writer.get(), entry.substr(0, 2)));
  asio::steady_timer rest(f.loop, milliseconds(20));
  rest.async_wait([&](const auto&) {
    REQUIRE(acc::write_all(writer.get(), entry.substr(2)));
    writer.reset();
  });
  CHECK(f.get(store, "/a") == "1");
}

TEST_CASE("file_store: another file is refused and left unchanged", "[store]") {
  Fixture f;
  f.folder.write("store", "distributed_type: FSDP\n");
  CHECK(f.outcome([&](auto handler) { f.store.set("/c", "3", handler); }) == StoreOutcome::closed);
  CHECK(f.store.loss().what.find("FileStore") != std::string::npos);
  CHECK(f.folder.read("store") == "distributed_type: FSDP\n");
}

TEST_CASE("file_store: a file that is replaced, or cannot be opened, is lost", "[store]") {
  Fixture f;
  CHECK(f.outcome([&](auto handler) { f.store.set("/a", "1", handler); }) == StoreOutcome::done);
  std::filesystem::remove(f.path);
  CHECK(f.outcome([&](auto handler) { f.store.set("/a", "1", handler); }) == StoreOutcome::closed);
  CHECK(f.store.loss().what.find("removed") != std::string::npos);

  FileStore nowhere(f.loop, f.folder.path() / "missing" / "store");
  CHECK(f.outcome([&](auto handler) { nowhere.set("/a", "1", handler); }) == StoreOutcome::closed);
  CHECK(nowhere.loss().what.find("No such file") != std::string::npos);
}

TEST_CASE("file_store: opened again it is the same store", "[store]") {
  Fixture f;
  std::optional<std::optional<acc::Error>> opened;
  const auto again = f.store.open_again(RunningClock::now() + seconds(60),
                                        [&](const std::optional<acc::Error>& error) { opened = error; });
  acc::test::drive(f.loop, [&] { return opened.has_value(); });
  CHECK_FALSE(opened->has_value());
  f.store.set("/a", "1");
  CHECK(f.get(f.store, "/a") == "1");
  CHECK(f.get(*again, "/a") == "1");
}

TEST_CASE("file_store: opened again it is lost if the file was replaced meanwhile", "[store]") {
  Fixture f;
  CHECK(f.outcome([&](auto handler) { f.store.set("/a", "1", handler); }) == StoreOutcome::done);
  const bool has_same_inode = GENERATE(true, false);
  if (has_same_inode) {
    std::filesystem::resize_file(f.path, 0);
  } else {
    std::filesystem::rename(f.path, f.folder.path() / "old");
    f.folder.write("store", f.folder.read("old"));
  }
  std::optional<std::optional<acc::Error>> opened;
  const auto again = f.store.open_again(RunningClock::now() + seconds(60),
                                        [&](const std::optional<acc::Error>& error) { opened = error; });
  acc::test::drive(f.loop, [&] { return opened.has_value(); });
  REQUIRE(opened->has_value());
  CHECK(std::string((*opened)->what()).find("replaced") != std::string::npos);
}

TEST_CASE("file_store: can be destroyed in a handler, and with pending operations", "[store]") {
  Fixture f;
  auto store = std::make_unique<FileStore>(f.loop, f.path);
  int called = 0;
  store->set("/a", "1", [&](StoreOutcome) {
    ++called;
    store.reset();
  });
  store->set("/b", "1", [&](StoreOutcome) { ++called; });
  store->wait({"/never"}, seconds(60), [&](StoreOutcome) { ++called; });
  while (f.loop.run_one() > 0) {
  }
  CHECK(called == 1);
}

}  // namespace file_store_test
