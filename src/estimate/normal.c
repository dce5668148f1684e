#include "estimate/normal.h"

#include <math.h>

double normal_share(double point)
{
    return 0.5 * erfc(-point / sqrt(2));
}

/* By bisection: erfc is all the C library has. */
double normal_quantile(double share)
{
    double low = -8, high = 8;

    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (normal_share(middle) < share)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}
