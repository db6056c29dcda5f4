# The worker: wheels are built in one stage and installed in the next, which has no compiler and no source.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY state state
COPY stream stream
COPY tests/kafka/pom.xml tests/kafka/pom.xml
RUN pip wheel --no-cache-dir --wheel-dir /wheels '.[script]'

FROM python:3.12-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin textsieve \
 && install -d -o textsieve -g textsieve /var/lib/textsieve
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels 'textsieve[script]' && rm -r /wheels
USER textsieve
ENV TEXTSIEVE_DATA_DIR=/var/lib/textsieve PYTHONUNBUFFERED=1
VOLUME /var/lib/textsieve
# SIGTERM finishes the batch in flight, commits, and closes the state.
STOPSIGNAL SIGTERM
ENTRYPOINT ["textsieve"]
CMD ["worker"]
