// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "acc/base/files.hpp"
#include "acc/launch/log_file.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/read_all.hpp"
#include "support/temporary_folder.hpp"

namespace log_file_events_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

TEST_CASE("event_log: appends to an existing file", "[launch]") {
  const test::TemporaryFolder folder;
  const auto file = folder.write("events.jsonl", "old\n");
  EventLog(file, {}).write("new\n");
  CHECK(folder.read("events.jsonl") == "old\nnew\n");
}

TEST_CASE("event_log: an unwritable file is an error at once, a full disk is reported once", "[launch]") {
  CHECK(test::error_of([] { EventLog("/no/such/folder/e", {}); }) ==
        "/no/such/folder/e: the event log cannot be written: no such folder: /no/such/folder (give "
        "--event-log another file)");
  std::vector<std::string> reasons;
  EventLog log("/dev/full", {.on_full = [&](const std::string& reason) { reasons.push_back(reason); }});
  log.write("a\n");
  log.write("b\n");
  CHECK(reasons == std::vector<std::string>{"No space left on device"});
}

TEST_CASE("event_log: a pipe with a reader is written, one without is refused", "[launch]") {
  const test::TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(test::error_of([&] { EventLog(pipe, {}); }).find("it is a pipe without a reader") !=
        std::string::npos);
  const Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EventLog(pipe, {}).write("line\n");
  std::array<char, 16> got = {};
  CHECK(::read(reader.get(), got.data(), got.size()) == 5);
}

TEST_CASE("event_log: a pipe whose reader stands still makes nobody wait, and gets the lines later",
          "[launch]") {
  const test::TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string line(999, 'x');
  std::vector<std::string> reasons;
  std::string got;
  {
    EventLog log(pipe, {.on_full = [&](const std::string& reason) { reasons.push_back(reason); }});
    for (int i = 0; i < 100; ++i) log.write(line + "\n");  // more than a pipe takes
    CHECK(reasons == std::vector<std::string>{"its reader does not read"});
    got = test::read_all(reader.get());
  }
  got += test::read_all(reader.get());
  CHECK(got.size() == 100'000);
}

TEST_CASE("event_log: a file that was removed or renamed is made again, which is told once", "[launch]") {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "logs/events.jsonl";
  std::filesystem::create_directory(folder.path() / "logs");
  std::vector<std::string> full;
  std::vector<std::string> reasons;
  int replaced = 0;
  EventLog::TimePoint now = {};
  EventLog log(path,
               {.on_full = [&](const std::string& reason) { full.push_back(reason); },
                .on_replaced = [&] { ++replaced; },
                .on_not_replaced = [&](const std::string& reason) { reasons.push_back(reason); }},
               now);
  const auto write_a_minute_later = [&](const char* line) { log.write(line, now += 1min); };
  log.write("a\n", now);
  std::filesystem::rename(path, folder.path() / "logs/old.jsonl");
  log.write("b\n", now += 59s);  // once a minute is enough
  log.write("c\n", now += 1s);
  CHECK(folder.read("logs/old.jsonl") == "a\nb\n");
  CHECK(folder.read("logs/events.jsonl") == "c\n");
  std::filesystem::remove(path);
  write_a_minute_later("d\n");
  CHECK(folder.read("logs/events.jsonl") == "d\n");
  CHECK(replaced == 1);
  CHECK(reasons.empty());

  std::filesystem::remove_all(folder.path() / "logs");
  write_a_minute_later("e\n");
  write_a_minute_later("f\n");
  CHECK(reasons == std::vector<std::string>{"no such folder: " + path.parent_path().string()});
  std::filesystem::create_directory(folder.path() / "logs");
  write_a_minute_later("g\n");
  CHECK(folder.read("logs/events.jsonl") == "g\n");
  CHECK(full.empty());  // a disk that is full later is told
}

TEST_CASE("event_log: a file that is still what its name says is not opened again", "[launch]") {
  const test::TemporaryFolder folder;
  const auto target = folder.write("target", "");
  std::filesystem::create_symlink(target, folder.path() / "link");
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  // By a number, as /dev/stdout is, a file that was removed is still the same.
  const Descriptor removed(::open((folder.path() / "removed").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  std::filesystem::remove(folder.path() / "removed");
  const std::string number = "/proc/self/fd/" + std::to_string(removed.get());
  for (const std::filesystem::path& path : {folder.path() / "link", pipe, {"/dev/null"}, {number}}) {
    int replaced = 0;
    EventLog::TimePoint now = {};
    EventLog log(path, {.on_replaced = [&] { ++replaced; }}, now);
    if (path == pipe) std::filesystem::remove(pipe);
    log.write("a\n", now += 1min);
    log.write("b\n", now += 1min);
    CHECK(replaced == 0);
  }
  CHECK(folder.read("target") == "a\nb\n");
  std::array<char, 16> got = {};
  CHECK(::read(reader.get(), got.data(), got.size()) == 4);
  CHECK(::pread(removed.get(), got.data(), got.size(), 0) == 4);
}

}  // namespace log_file_events_test
