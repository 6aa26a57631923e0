# SPDX-License-Identifier: Apache-2.0
"""record_zips.py FOLDER: archives of Python's zipfile, for tests/unit/formats/zip_archive_test.cpp."""
import sys
import zipfile


def write(name, method=zipfile.ZIP_STORED, force_zip64=False):
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}.zip", "w") as archive:
        for file, data in (("a/data.pkl", b"\x80\x02N."), ("a/data/0", b"12345678")):
            info = zipfile.ZipInfo(file)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=force_zip64) as out:
                out.write(data)


write("plain")
write("deflated", zipfile.ZIP_DEFLATED)
# Numbers in 64 bits, as in a file of more than 4 GB.
zipfile.ZIP64_LIMIT = 10
write("wide", force_zip64=True)
