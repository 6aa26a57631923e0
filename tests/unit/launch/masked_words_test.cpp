// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/masked_words.hpp"

#include "support/catch.hpp"

namespace masked_words_test {

using namespace acc::launcher;
using Words = std::vector<std::string>;

TEST_CASE("masked_words: values of arguments that name a secret are hidden, others stay", "[launch]") {
  CHECK(masked_words({"python", "train.py", "--hf-token", "abc", "--lr", "0.1"}) ==
        Words{"python", "train.py", "--hf-token", "***", "--lr", "0.1"});
  CHECK(masked_words({"--API_KEY=abc=", "wandb.key=abc", "-password", "abc", "--name=x=key"}) ==
        Words{"--API_KEY=***", "wandb.key=***", "-password", "***", "--name=x=key"});
  CHECK(masked_words({"--use-secrets", "--epochs", "3", "key.py"}) ==
        Words{"--use-secrets", "--epochs", "3", "key.py"});
  CHECK(masked_words({"--token"}) == Words{"--token"});
  CHECK(masked_words({"--token", "-abc"}) == Words{"--token", "***"});
}

TEST_CASE("masked_value: a setting is hidden by its name, or by those of the pairs in it", "[launch]") {
  CHECK(masked_value("api_token", "abc") == "***");
  CHECK(masked_value("rdzv_conf", "timeout=3,password=a,read=4") == "timeout=3,password=***,read=4");
  CHECK(masked_value("num_processes", 2) == 2);
  CHECK(masked_value("list", Value::parse(R"(["key=1", {"secret": [1], "plain": 2}])")) ==
        Value::parse(R"(["key=***", {"secret": "***", "plain": 2}])"));
}

}  // namespace masked_words_test
