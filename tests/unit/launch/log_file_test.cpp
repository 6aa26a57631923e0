// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/log_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "acc/launch/relay.hpp"
#include "support/catch.hpp"
#include "support/read_all.hpp"
#include "support/temporary_folder.hpp"

namespace log_file_test {

using namespace acc;
using namespace acc::launcher;

namespace {

Descriptor open_to_write(const std::filesystem::path& file) {
  return Descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

}  // namespace

TEST_CASE("log_file: text that did not fit on a full disk is written later", "[launch]") {
  const test::TemporaryFolder folder;
  const Descriptor real = open_to_write(folder.path() / "log");
  Descriptor full = open_to_write("/dev/full");
  const int fd = full.get();
  LogFile log(std::move(full));
  CHECK(log.write("one\n") == "No space left on device");
  CHECK(log.write("two\n") == "No space left on device");
  REQUIRE(::dup3(real.get(), fd, O_CLOEXEC) == fd);
  CHECK(log.write("three\n").empty());
  CHECK(log.close() == 0);
  CHECK(folder.read("log") == "one\ntwo\nthree\n");
}

TEST_CASE("log_file: text beyond the buffer is counted as lost", "[launch]") {
  LogFile log(open_to_write("/dev/full"));
  const std::string megabyte(1U << 20U, 'x');
  CHECK_FALSE(log.write("kept\n").empty());
  for (int i = 0; i < 3; ++i) CHECK_FALSE(log.write(megabyte + "\n").empty());
  CHECK(log.close() == 5 + 3 * (megabyte.size() + 1));
}

TEST_CASE("log_file: another file begins with a whole line", "[launch]") {
  const test::TemporaryFolder folder;
  Channel pipe = make_pipe();
  REQUIRE(::fcntl(pipe.workers.get(), F_SETFL, O_NONBLOCK) == 0);
  const auto size = static_cast<std::size_t>(::fcntl(pipe.workers.get(), F_SETPIPE_SZ, 4096));
  LogFile log(std::move(pipe.workers));
  CHECK_FALSE(log.write(std::string(size + 100, 'x') + "\n").empty());
  CHECK_FALSE(log.write("next\n").empty());
  log.replace(open_to_write(folder.path() / "log"));
  CHECK(log.write("last\n").empty());
  CHECK(folder.read("log") == "next\nlast\n");
  CHECK(log.close() == 101);
}

TEST_CASE("log_file: without a file nothing is lost", "[launch]") {
  LogFile none;
  CHECK_FALSE(none);
  CHECK(none.close() == 0);
}

TEST_CASE("filtered_log: keeps the lines with one of the words, as shown", "[launch]") {
  Channel pipe = make_pipe();
  FilteredLog log(std::move(pipe.workers), {"apple", "z,z"}, [](const std::string&) {});
  log.write("an apple a day", "[0]:an apple a day\n");
  log.write("a pear", "apple[0]:a pear\n");
  log.write("az,z", "[1]:az,z\n");
  CHECK(test::read_all(pipe.ours.get()) == "[0]:an apple a day\n[1]:az,z\n");
}

TEST_CASE("filtered_log: a file that cannot be written is retried", "[launch]") {
  std::vector<std::string> reasons;
  FilteredLog log(Descriptor(::open("/dev/full", O_WRONLY | O_CLOEXEC)), {"a"},
                  [&](const std::string& reason) { reasons.push_back(reason); });
  log.write("a", "a\n");
  log.write("a", "a\n");
  CHECK(reasons == std::vector<std::string>(2, "No space left on device"));
  CHECK(log.close() == 4);
}

}  // namespace log_file_test
