"""How long the evaluator takes against faster-coco-eval alone, and on crowded images: `python -m benchmarks.evaluation`.

Both start from the same arrays and end with figures: faster-coco-eval with COCO's twelve, the evaluator with those, the same a
class and a size, precision-recall curves, best F1, the confusion matrix and two slices. In turn, by processor time, medians.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import numpy as np
from faster_coco_eval import COCO, COCOeval_faster

from benchmarks.bootstrap import a_model, a_truth
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.evaluate import Subject, evaluate
from nightowl.evaluation.slices import Slice
from nightowl.evaluation.truth import Truth
from nightowl.evaluation.validation import validate

SUBJECT = Subject("candidate", "0" * 64, "1" * 64, "test", 0.01)


def alone(truth: Truth, detections: Detections) -> float:
    """mAP50-95 by faster-coco-eval as its own page shows it."""
    boxes, found = truth.boxes_xyxy, detections.boxes_xyxy.astype(np.float64)
    reference = COCO(print_function=lambda *_: None)
    reference.dataset = {
        "images": [{"id": index + 1} for index in range(len(truth.images))],
        "categories": [{"id": index + 1, "name": name} for index, name in enumerate(truth.classes)],
        "annotations": [
            {
                "id": i + 1,
                "image_id": m + 1,
                "category_id": c + 1,
                "bbox": [x, y, p - x, q - y],
                "area": (p - x) * (q - y),
                "iscrowd": k,
            }
            for i, (m, c, (x, y, p, q), k) in enumerate(
                zip(
                    truth.image_index.tolist(),
                    truth.class_id.tolist(),
                    boxes.tolist(),
                    truth.ignore.astype(int).tolist(),
                    strict=True,
                )
            )
        ],
    }
    reference.createIndex()
    results = [
        {"image_id": m + 1, "category_id": c + 1, "bbox": [x, y, p - x, q - y], "score": s}
        for m, c, (x, y, p, q), s in zip(
            detections.image_index.tolist(),
            detections.class_id.tolist(),
            found.tolist(),
            detections.score.tolist(),
            strict=True,
        )
    ]
    scorer = COCOeval_faster(reference, reference.loadRes(results), iouType="bbox", print_function=lambda *_: None)
    scorer.run()
    return float(scorer.stats[0])


def ours(truth: Truth, detections: Detections) -> float:
    half = len(truth.images) // 2
    slices = (Slice(name="first", images=truth.images[:half]), Slice(name="second", images=truth.images[half:]))
    made = evaluate(truth, detections, SUBJECT, max_detections=100, confusion_confidence=0.25, slices=slices)
    return made.metrics.map50_95 or 0.0


def seconds(work: Callable[[Truth, Detections], object], truth: Truth, detections: Detections) -> float:
    start = time.process_time()
    work(truth, detections)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--crowded", type=int, default=500, help="images of 1,000 objects each")
    given = parser.parse_args()
    repeats = given.repeats
    random = np.random.default_rng(0)
    truth = a_truth(random, given.images, 80, 7)
    model = a_model(random, truth, 100)
    print(f"{given.images} images, 80 classes, {len(truth.class_id)} objects, {len(model)} detections")
    print(f"mAP50-95: {alone(truth, model):.8f} alone, {ours(truth, model):.8f} ours")
    times = [(seconds(alone, truth, model), seconds(ours, truth, model)) for _ in range(repeats)]
    epochs = [seconds(lambda t, d: validate(t, d, 100), truth, model) for _ in range(repeats)]
    theirs, own = (statistics.median(side) for side in zip(*times, strict=True))
    ratio = statistics.median(b / a for a, b in times)
    print(f"faster-coco-eval alone {theirs:.1f} s, evaluator {own:.1f} s, ratio {ratio:.2f}")
    print(f"figures of an epoch    {statistics.median(epochs):.1f} s, ratio {statistics.median(epochs) / theirs:.2f}")
    crowded = a_truth(random, given.crowded, 10, 1000)
    detections = a_model(random, crowded, 1000)
    limit = statistics.median(
        seconds(lambda t, d: evaluate(t, d, SUBJECT, max_detections=1000, confusion_confidence=0.25), crowded, detections)
        for _ in range(repeats)
    )
    print(f"{given.crowded} images of 1000 objects, {len(detections)} detections: {limit:.1f} s")
    print(f"peak memory of it all  {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
