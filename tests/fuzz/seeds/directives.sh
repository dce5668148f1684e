#!/bin/sh
#CARMA --gpus 2 -J "my run"
#CARMA -o 'a b' c\ d # e

echo
