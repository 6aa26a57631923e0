// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/file_timer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acc/base/files.hpp"
#include "acc/base/stat_line.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace file_timer_test {

using namespace acc;
using namespace acc::launcher;

namespace {

void write_as_a_worker(const std::filesystem::path& pipe, const std::string& text) {
  const Descriptor fd(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(fd);
  REQUIRE(write_all(fd.get(), text));
}

}  // namespace

TEST_CASE("file_timer: reports a missed deadline, among invalid requests", "[launch]") {
  boost::asio::io_context loop;
  const test::TemporaryFolder folder;
  const auto pipe = folder.path() / "timer";
  std::vector<TimerTable::Expired> seen;
  {
    FileTimer timer(loop, pipe, [&](const TimerTable::Expired& expired) { seen.push_back(expired); });
    write_as_a_worker(pipe, "rubbish\n");
    write_as_a_worker(pipe, R"({"pid": 7, "scope_id": "a", "expiration_time": 9e9, "signal": 9})"
                            "\n");
    write_as_a_worker(pipe, R"({"pid": 8, "scope_id": "b", "expiration_time": 1, "signal": 15})"
                            "\n");
    while (seen.empty()) loop.run_one();
    CHECK(seen == std::vector<TimerTable::Expired>{{8, "b", 15, process_start("8")}});
    struct stat status = {};
    CHECK(::stat(pipe.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600);
  }
  CHECK_FALSE(std::filesystem::exists(pipe));
}

TEST_CASE("file_timer: replaces an old pipe, and no other file", "[launch]") {
  boost::asio::io_context loop;
  const test::TemporaryFolder folder;
  const auto pipe = folder.path() / "timer";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  FileTimer(loop, pipe, {});
  folder.write("timer", "a file");
  CHECK(test::error_of([&] {
          FileTimer(loop, pipe, {});
        }).find("cannot create the pipe of the file timer: File exists") != std::string::npos);
  CHECK(folder.read("timer") == "a file");
}

}  // namespace file_timer_test
