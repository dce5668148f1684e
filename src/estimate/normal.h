/* The normal distribution. */
#ifndef CARMA_ESTIMATE_NORMAL_H
#define CARMA_ESTIMATE_NORMAL_H

/* The share that lies below the point. */
double normal_share(double point);

/* The point below which this share lies, from -8 to 8. */
double normal_quantile(double share);

#endif
