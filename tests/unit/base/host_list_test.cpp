// SPDX-License-Identifier: Apache-2.0
#include "acc/base/host_list.hpp"

#include "acc/base/text.hpp"
#include "support/catch.hpp"
#include "support/engine_environments.hpp"
#include "support/errors.hpp"

namespace host_list_test {

using acc::expand_counts;
using acc::expand_host_list;
using acc::test::error_of;
using Hosts = std::vector<std::string>;

TEST_CASE("host_list: expands as Slurm does", "[base]") {
  std::ifstream in = acc::test::open_engine_file("slurm_hostlists.tsv");
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    CAPTURE(line);
    const std::size_t tab = line.find('\t');
    const std::string list = line.substr(0, tab);
    const std::string expected = line.substr(tab + 1);
    if (expected == "ERROR") {
      CHECK_THROWS_AS(expand_host_list(list, "LIST"), acc::Error);
    } else if (list == "n[1-3]a") {
      // Slurm 22.05 refuses the suffix.
      CHECK(expand_host_list(list, "LIST") == Hosts{"n1a", "n2a", "n3a"});
    } else {
      CHECK(acc::join(expand_host_list(list, "LIST"), " ") == expected);
    }
  }
  CHECK(lines == 17);
}

TEST_CASE("host_list: an empty list has no hosts, and an order stays", "[base]") {
  CHECK(expand_host_list("", "LIST").empty());
  CHECK(expand_host_list("node[3,1],login", "LIST") == Hosts{"node3", "node1", "login"});
}

TEST_CASE("host_list: what is no list is an error that names it", "[base]") {
  CHECK(error_of([] { expand_host_list("n[1-2", "LIST"); }) ==
        "LIST: 'n[1-2' has a bracket that is not closed");
  CHECK(error_of([] { expand_host_list("n[a-b]", "LIST"); }) ==
        "LIST: 'n[a-b]' has no range of numbers in 'a-b'");
  CHECK(error_of([] { expand_host_list("n[]", "LIST"); }) == "LIST: 'n[]' has no range of numbers in ''");
  CHECK(error_of([] { expand_host_list("n[1-9999999]", "LIST"); }) ==
        "LIST: 'n[1-9999999]' names too many hosts");
  CHECK(error_of([] { expand_host_list("n[1-9999][1-9999]", "LIST"); }) ==
        "LIST: 'n[1-9999][1-9999]' names too many hosts");
}

TEST_CASE("host_list: of a long word an error has the beginning", "[base]") {
  const std::string word(10'000, 'x');
  CHECK(error_of([&] { expand_host_list("n[" + word + "]", "LIST"); }).size() < 300);
  CHECK(error_of([&] { expand_counts(word, "LIST"); }).size() < 300);
}

TEST_CASE("host_list: a short list cannot fill the memory", "[base]") {
  const auto is_refused = [](const std::string& list, const std::string& why) {
    return error_of([&] { expand_host_list(list, "LIST"); }).ends_with(why);
  };
  std::string ranges = "0-999998";
  for (int i = 0; i < 1000; ++i) ranges += ",0-999998";
  CHECK(is_refused("n[" + ranges + "]", "names too many hosts"));
  CHECK(is_refused(std::string(401, 'n') + "[1-90000]", "has a name that is too long"));
  CHECK(is_refused("n[1-90000]" + std::string(401, 'n'), "has a name that is too long"));
  CHECK(is_refused("n[1-90000]" + std::string(300, 'n'), "names too many hosts"));
}

TEST_CASE("host_list: counts are written with repetitions", "[base]") {
  CHECK(expand_counts("3,1(x2)", "TASKS") == std::vector<int>{3, 1, 1});
  CHECK(expand_counts("1", "TASKS") == std::vector<int>{1});
  CHECK(expand_counts("2(x3),0", "TASKS") == std::vector<int>{2, 2, 2, 0});
  for (const char* list : {"", "x", "1(x0)", "1(x", "1(x2", "1)", "-1", "1,,2", "1(x99999999)"}) {
    CAPTURE(list);
    CHECK_THROWS_AS(expand_counts(list, "TASKS"), acc::Error);
  }
}

}  // namespace host_list_test
