"""Examine a library: what the doctor looks at, in which order.

What needs a training's predictions is in `app.library.doctor.predicted`:

    predicted_findings(census: Census, run: Run, predictions: Predictions) -> list[Finding]

The predictions are those of `Judged`: of samples that the census has, with the labels that they have today.
"""
