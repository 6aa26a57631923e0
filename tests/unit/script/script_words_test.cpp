// SPDX-License-Identifier: Apache-2.0
#include "acc/script/script_words.hpp"

#include <yaml-cpp/yaml.h>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace script_words_test {

using acc::launcher::bash_command;
using acc::launcher::bash_word;
using acc::launcher::dns_label;
using acc::launcher::kubernetes_text;
using acc::launcher::yaml_text;
using acc::test::error_of;

TEST_CASE("script words: bash reads each word back, on one line", "[script]") {
  CHECK(bash_word("--lr=0.1") == "--lr=0.1");
  CHECK(bash_word("") == "''");
  CHECK(bash_word("a b") == "'a b'");
  CHECK(bash_word("it's $HOME") == R"('it'\''s $HOME')");
  CHECK(bash_word("~") == "'~'");
  CHECK(bash_word("two\nlines 'and' \\") == R"($'two\012lines \'and\' \\')");
  CHECK(bash_command({"acc", "launch", "my train.py"}) == "acc launch 'my train.py'");
}

TEST_CASE("script words: YAML reads each text back as a string", "[script]") {
  for (const std::string text :
       {"no", "1:30", "null", "", " a ", "# x", "a: b", "\"quoted\" \\ 'text'", "two\nlines\ttab\x01\x7f",
        "caf\xc3\xa9 \xf0\x9f\x99\x82", "\xc2\x85 \xe2\x80\xa8 \xef\xbb\xbf", "{{x}} %d [y] &a *b !c"}) {
    const std::string quoted = yaml_text(text);
    INFO(quoted);
    CHECK(quoted.find('\n') == std::string::npos);
    CHECK(YAML::Load(quoted).as<std::string>() == text);
  }
  CHECK(yaml_text("\x7f\xc2\x80\xe2\x80\xa9") == R"("\x7f\x80\u2029")");
  CHECK(error_of([] { yaml_text("a\xff"); }).find("is not UTF-8, and cannot be written in a manifest") !=
        std::string::npos);
}

TEST_CASE("script words: Kubernetes expands nothing", "[script]") {
  CHECK(kubernetes_text("$(HOME) $$ $local_rank") == R"("$$(HOME) $$$$ $$local_rank")");
}

TEST_CASE("script words: any text gives a DNS label", "[script]") {
  CHECK(dns_label("train") == "train");
  CHECK(dns_label("My_Train.v2!") == "my-train-v2");
  CHECK(dns_label("2nd") == "job-2nd");
  CHECK(dns_label("") == "job");
  CHECK(dns_label("-") == "job");
  CHECK(dns_label(std::string(39, 'a') + "-b") == std::string(39, 'a'));
}

}  // namespace script_words_test
