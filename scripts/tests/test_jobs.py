"""Jobs run side by side, and each returns its own output, exit code and times."""
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from lib.jobs import Job, Runner  # noqa: E402


def python(name, code, seconds=30):
    return Job(name, [sys.executable, "-c", code], seconds)


class Jobs(unittest.TestCase):
    def setUp(self):
        self.runner = Runner("/")

    def test_jobs_in_two_lanes_run_at_the_same_time(self):
        # Each needs the other to run: it writes to a pipe that the other reads.
        with tempfile.TemporaryDirectory() as folder:
            for name in "ab":
                os.mkfifo(f"{folder}/{name}")
            first = python("first", f"print('1', file=open('{folder}/a', 'w')); print(open('{folder}/b').read().strip())")
            second = python("second", f"print(open('{folder}/a').read().strip()); print('2', file=open('{folder}/b', 'w'))")
            found = {result.job.name: result.lines for result in self.runner.run_all([first, second], 2)}
        self.assertEqual(found, {"first": ["2"], "second": ["1"]})

    def test_of_two_jobs_that_need_the_same_thing_one_runs_at_a_time(self):
        with tempfile.TemporaryDirectory() as folder:
            # Fails if the other job has created the folder and not yet removed it.
            code = f"import os, time; os.mkdir('{folder}/x'); time.sleep(0.1); os.rmdir('{folder}/x')"
            jobs = [python(name, code) for name in "abc"]
            for job in jobs:
                job.needs = "folder"
            found = [result.code for result in self.runner.run_all(jobs + [python("free", "pass")], 3)]
        self.assertEqual(found, [0, 0, 0, 0])

    def test_a_failed_job_answers_its_exit_code_and_the_next_one_runs(self):
        jobs = [python("bad", "import sys; print('no'); sys.exit(3)"), python("good", "print('yes')")]
        found = [(result.code, result.lines) for result in self.runner.run_all(jobs, 1)]
        self.assertEqual(found, [(3, ["no"]), (0, ["yes"])])

    def test_a_job_that_hangs_is_killed_with_its_children(self):
        job = python("hang", "import subprocess; subprocess.run(['sleep', '100'])", 1)
        self.assertIsNone(self.runner.run(job).code)

    def test_a_job_that_a_signal_ends_answers_the_signal(self):
        self.assertEqual(self.runner.run(python("trap", "import os; os.kill(os.getpid(), 6)")).code, -6)

    def test_a_program_that_is_missing_fails_its_job_alone(self):
        jobs = [Job("missing", ["/nonexistent/program"], 5), python("good", "pass")]
        self.assertEqual([result.code for result in self.runner.run_all(jobs, 1)], [127, 0])

    def test_the_time_of_the_processor_is_counted(self):
        result = self.runner.run(python("busy", "sum(range(3_000_000))"))
        self.assertTrue(0 < result.cpu < 30 and result.wall > 0)


if __name__ == "__main__":
    unittest.main()
