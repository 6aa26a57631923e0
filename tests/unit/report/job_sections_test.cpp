// SPDX-License-Identifier: Apache-2.0
#include "acc/report/job_sections.hpp"

#include "support/catch.hpp"

namespace job_sections_test {

using namespace acc::launcher;

TEST_CASE("job_sections: a few hosts are named, the others counted", "[report]") {
  CHECK(hosts_text({.hosts = {"a", "b"}}) == "a, b");
  CHECK(hosts_text({.hosts = {"a", "b", "c", "d", "e", "f"}}) == "a, b, c, d and 2 more");
}

TEST_CASE("job_sections: what is not known has no section", "[report]") {
  CHECK(failures_section({}).empty());
  CHECK(settings_section({}).empty());
}

TEST_CASE("job_sections: failures and settings are escaped", "[report]") {
  const std::string failures = failures_section(
      {.time = {10, 20},
       .failures = {{.time = 12, .rank = 3, .host = "<b>", .status = "exit code 1", .stderr_tail = "<i>"}}});
  CHECK(failures.find("<strong>Rank 3 on &lt;b&gt;</strong>, attempt 0, after 2 s: exit code 1") !=
        std::string::npos);
  CHECK(failures.find("<pre>&lt;i&gt;</pre>") != std::string::npos);
  const std::string settings =
      settings_section({.command = {"train", "a b"}, .settings = {{"name", "<v>", "--flag"}}});
  CHECK(settings.find("train &#39;a b&#39;") != std::string::npos);
  CHECK(settings.find("<td>&lt;v&gt;</td>") != std::string::npos);
}

TEST_CASE("job_sections: of a script in an argument the first lines are shown", "[report]") {
  std::string script;
  for (int line = 1; line <= 20; ++line) script += "line" + std::to_string(line) + "\n";
  const std::string settings = settings_section({.command = {"python", "-c", script, "x"}});
  CHECK(settings.find("python -c &#39;line1\nline2") != std::string::npos);
  CHECK(settings.find("line8&#39; (and 13 more lines) x</pre>") != std::string::npos);
  CHECK(settings.find("line9") == std::string::npos);
}

}  // namespace job_sections_test
