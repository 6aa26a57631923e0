# SPDX-License-Identifier: Apache-2.0
"""The .deb and the tar.gz that cpack makes of the launcher of this build, and its bill of materials.

    cpack_test.py CPACK BUILD_FOLDER WORK_FOLDER
"""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

PAGES = ["acc", "acc-launch", "acc-run", "acc-torchrun"]


def output_of(*command, **more):
    return subprocess.run(command, text=True, capture_output=True, check=True, timeout=120, **more).stdout


def check_program(bin_folder):
    assert output_of(bin_folder / "acc", "--version").startswith("acc "), bin_folder
    lines = output_of(bin_folder / "acc", "launch", "--cpu", "--num_processes", "2", "sh", "-c", "echo rank $RANK").splitlines()
    assert sorted(lines) == ["rank 0", "rank 1"], lines
    assert "usage: acc-torchrun" in output_of(bin_folder / "acc-torchrun", "--help")
    needed = set(re.findall(r"^\s+(\S+) (?:=>|\()", output_of("ldd", bin_folder / "acc"), flags=re.MULTILINE))
    foreign = [name for name in needed if not re.search(r"linux-vdso|ld-linux|^lib(c|m|dl|rt|pthread)\.so", name)]
    assert not foreign, f"needs {foreign}, beside the C library"


def check_bill(file):
    bill = json.loads(file.read_text())
    assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["name"] == "acc", bill
    names = {component["name"] for component in bill["components"]}
    assert {"fmt", "spdlog", "yaml-cpp", "CLI11", "nlohmann_json", "Boost", "libsodium", "xxhash", "ftxui"} <= names, names
    assert not {"Catch2", "ZLIB"} & names, names
    for component in bill["components"]:
        licence = component["licenses"][0]
        assert re.fullmatch(r"[\d.]+", component["version"]) and (licence.get("expression") or licence["license"]["id"]), component
    assert bill["dependencies"][0]["dependsOn"] == [component["bom-ref"] for component in bill["components"]]


def check_completion(folder):
    script = f'source "{folder}/bash-completion/completions/acc"; COMP_WORDS=(acc la); COMP_CWORD=1; _acc; echo "${{COMPREPLY[@]}}"'
    assert output_of("bash", "-c", script) == "launch\n"
    assert (folder / "fish/vendor_completions.d/acc.fish").read_text().count("complete -c acc") > 10


def check_archive(archive, work):
    with tarfile.open(archive) as packed:
        names = packed.getnames()
        packed.extractall(work)
    assert {name.split("/")[0] for name in names} == {archive.name.removesuffix(".tar.gz")}, names
    assert not [name for name in names if re.search(r"libacc|selftest|include|\.cmake$", name)], names
    folder = work / "any folder"
    (work / archive.name.removesuffix(".tar.gz")).rename(folder)
    check_program(folder / "bin")
    check_bill(folder / "share/doc/acc/acc.cdx.json")
    check_completion(folder / "share")
    assert (folder / "share/zsh/site-functions/_acc").read_text().startswith("#compdef acc")
    assert (folder / "share/doc/acc/LICENSE").exists()
    for page in PAGES:
        assert (folder / f"share/man/man1/{page}.1").stat().st_size, page


def check_debian(package, work):
    fields = dict(line.split(": ", 1) for line in output_of("dpkg-deb", "--field", package).splitlines() if re.match(r"\w[\w-]*: ", line))
    assert fields["Package"] == "acc" and re.fullmatch(r"libc6 \(>= 2\.\d+\)", fields["Depends"]), fields
    assert package.name == f"acc_{fields['Version']}_{fields['Architecture']}.deb", package
    root = work / "root"
    output_of("dpkg-deb", "--extract", package, root)
    check_program(root / "usr/bin")
    check_bill(root / "usr/share/doc/acc/acc.cdx.json")
    check_completion(root / "usr/share")
    assert (root / "usr/share/zsh/vendor-completions/_acc").exists()
    for page in PAGES:
        assert gzip.open(root / f"usr/share/man/man1/{page}.1.gz").read(), page
    copyright_ = (root / "usr/share/doc/acc/copyright").read_text()
    assert "/usr/share/common-licenses/Apache-2.0" in copyright_ and "\n---- fmt " in copyright_, copyright_
    assert gzip.open(root / "usr/share/doc/acc/changelog.gz", "rt").read().startswith(f"acc ({fields['Version']})")
    for file in root.rglob("*"):
        assert file.is_symlink() or file.stat().st_mode & 0o022 == 0, file


def main(cpack, build, work):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    kinds = ["TGZ"] + (["DEB"] if shutil.which("dpkg-deb") else [])
    output_of(cpack, "-G", ";".join(kinds), "--config", build / "CPackConfig.cmake", "-B", work / "packed", umask=0o077)
    check_archive(next(work.glob("packed/*.tar.gz")), work)
    if "DEB" in kinds:
        check_debian(next(work.glob("packed/*.deb")), work)
    shutil.rmtree(work)


if __name__ == "__main__":
    main(sys.argv[1], *(pathlib.Path(folder).resolve() for folder in sys.argv[2:]))
