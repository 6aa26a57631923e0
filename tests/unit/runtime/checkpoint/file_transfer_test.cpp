// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/file_transfer.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace file_transfer_test {

using acc::detail::ReceivedFile;
using acc::test::TemporaryFolder;

TEST_CASE("file_transfer: a file arrives whole, whatever its size", "[runtime]") {
  const TemporaryFolder folder;
  const std::string text(GENERATE(std::size_t{0}, std::size_t{1}, (std::size_t{32} << 20U) + 3), 'x');
  const auto file = folder.write("from", text);
  ReceivedFile received(folder.path() / "new" / "to");
  acc::detail::send_file(file, 0, {}, received);
  received.finish();
  CHECK(folder.read("new/to") == text);
}

TEST_CASE("file_transfer: who needs none writes none", "[runtime]") {
  const TemporaryFolder folder;
  ReceivedFile none;
  acc::detail::send_file(folder.write("from", "text"), 0, {}, none);
  none.finish();
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("file_transfer: what cannot be written is told at the end", "[runtime]") {
  const TemporaryFolder folder;
  const auto file = folder.write("from", "text");
  ReceivedFile received(file / "below");
  acc::detail::send_file(file, 0, {}, received);
  CHECK_THAT(acc::test::error_of([&] { received.finish(); }), Catch::Matchers::Contains("cannot be written"));
}

}  // namespace file_transfer_test
