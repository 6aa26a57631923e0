// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/pt_archive.hpp"

#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"
#include "support/torch_tensor.hpp"

namespace pt_archive_test {

TEST_CASE("pt archive: its bytes are read wherever they are in a file", "[runtime]") {
  const acc::PtDict value{{"a", 1}, {"t", acc::test::numbers({1, 2}, {2}, at::kFloat)}};
  const acc::detail::PtArchive archive(value, "state");
  std::string bytes;
  for (const std::string_view part : archive.parts()) bytes += part;
  CHECK(bytes.size() == archive.size());
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("shards", "before" + bytes + "after");
  const acc::PtValue read = acc::detail::read_pt_archive(file, 6, archive.size());
  CHECK(read.find("a")->number() == 1);
  CHECK(read.find("t")->get_if<at::Tensor>()->equal(acc::test::numbers({1, 2}, {2}, at::kFloat)));
}

TEST_CASE("pt archive: a value that torch.save lacks is an error that says where it is", "[runtime]") {
  CHECK(acc::test::error_of([] {
          acc::detail::PtArchive(acc::PtObject{"m.C"}, "state");
        }).starts_with("state: "));
}

}  // namespace pt_archive_test
