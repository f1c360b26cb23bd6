from scalemani.interfaces.cli.printing import aligned


def test_columns_end_below_each_other_and_are_no_wider_than_what_they_hold():
    assert aligned([["method", "error"], ["kmeans++", "0.6"], ["", "0.51 ± 0.02"]]) == [
        "  method        error",
        "kmeans++          0.6",
        "          0.51 ± 0.02",
    ]
