"""What deploy/wheel.sh looks for in what `scalemani doctor` prints is what it prints of machine code that is used."""

import re
from pathlib import Path

from scalemani.interfaces.cli.doctor import show_examination
from scalemani.kernels.machine.code_cache import LEVELS, InstalledCode

SCRIPT = Path(__file__).parents[2] / "deploy/wheel.sh"


def printed(capsys, code):
    show_examination({"machine code": code._asdict(), "slow": []})
    return capsys.readouterr().out


def test_the_script_knows_used_machine_code_by_what_doctor_prints(capsys):
    (pattern,) = re.findall(r'scalemani doctor \| grep -E "(.*)"', SCRIPT.read_text())
    for level in LEVELS:
        assert re.search(pattern, printed(capsys, InstalledCode(level)), re.MULTILINE)
    assert not re.search(pattern, printed(capsys, InstalledCode(None, "this installation holds none")), re.MULTILINE)
