/* GET /v1/openapi.json: the API in OpenAPI 3.1, made of its tables. */
#ifndef CARMA_DAEMON_REQUEST_OPENAPI_H
#define CARMA_DAEMON_REQUEST_OPENAPI_H

/* Made when it is first asked for, and kept: no user's questions cost more than a copy. */
const char *openapi_text(void);

#endif
