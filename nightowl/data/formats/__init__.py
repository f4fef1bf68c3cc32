"""Readers of data set layouts: Ultralytics YOLO, COCO JSON, Pascal VOC; all give the same record."""
