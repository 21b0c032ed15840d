"""A zip file whose bytes depend only on its content, SOURCE_DATE_EPOCH and COMPRESSION_LEVEL."""

import os
import time
import zipfile

EARLIEST = 315532800  # 1980-01-01: zip files know no earlier date


class FixedZip(zipfile.ZipFile):
    def __init__(self, path: str):
        self.level = int(os.environ["COMPRESSION_LEVEL"])
        super().__init__(path, "w", zipfile.ZIP_DEFLATED, compresslevel=self.level)
        self.date = time.gmtime(max(EARLIEST, int(os.environ["SOURCE_DATE_EPOCH"])))[:6]

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        entry = zipfile.ZipInfo(name, self.date)
        entry.create_system = 3  # Unix: the mode counts
        entry.external_attr = (0o100000 | mode) << 16
        self.writestr(entry, content, zipfile.ZIP_DEFLATED, self.level)
