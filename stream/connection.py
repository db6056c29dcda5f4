"""How to reach the broker: one set of settings, said in the three ways that the three clients understand."""

import ssl
from typing import Any, Final

import faust
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)

from stream.errors import SettingsError
from stream.settings import PREFIX, Settings

IN_DOUBT: Final = (KafkaError, TimeoutError, OSError)
"""What a call to Kafka through aiokafka ends with when it is not known what became of it."""

FORBIDDEN: Final = (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
"""What the broker answers until somebody grants a right: waiting for it would be a stall that nobody sees."""


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """The TLS context of the settings; None where the protocol is not one of the TLS ones.

    Raises:
        SettingsError: a file cannot be read, or the key does not fit the certificate.
    """
    if not settings.uses_tls:
        return None
    password = settings.tls_key_password
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca_file)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"{PREFIX}TLS_CA_FILE={settings.tls_ca_file} cannot be used: {error}") from error
    if settings.tls_certificate_file is not None:
        try:
            context.load_cert_chain(
                settings.tls_certificate_file,
                settings.tls_key_file,
                # Without any, OpenSSL would ask the terminal for the password of an encrypted key.
                "" if password is None else password.get_secret_value(),
            )
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"{PREFIX}TLS_CERTIFICATE_FILE={settings.tls_certificate_file} and "
                f"{PREFIX}TLS_KEY_FILE={settings.tls_key_file} cannot be used, "
                f"{'without' if password is None else 'with'} {PREFIX}TLS_KEY_PASSWORD: {error}"
            ) from error
    return context


def aiokafka_options(settings: Settings) -> dict[str, Any]:
    """Keyword arguments that every aiokafka client is made with."""
    options: dict[str, Any] = {
        "bootstrap_servers": settings.broker.split(","),
        "security_protocol": settings.security_protocol,
        "ssl_context": tls_context(settings),
    }
    if settings.sasl_username is not None and settings.sasl_password is not None:
        options["sasl_mechanism"] = settings.sasl_mechanism
        options["sasl_plain_username"] = settings.sasl_username
        options["sasl_plain_password"] = settings.sasl_password.get_secret_value()
    return options


def confluent_options(settings: Settings) -> dict[str, Any]:
    """The configuration of a confluent-kafka client (librdkafka's names)."""
    options: dict[str, Any] = {
        "bootstrap.servers": settings.broker,
        "security.protocol": settings.security_protocol,
        "socket.timeout.ms": settings.deadline,
        # What it would print of passing trouble, our own errors say in sentences.
        "log_level": 2,
    }
    files = {
        "ssl.ca.location": settings.tls_ca_file,
        "ssl.certificate.location": settings.tls_certificate_file,
        "ssl.key.location": settings.tls_key_file,
    }
    options |= {name: str(path) for name, path in files.items() if path is not None}
    if settings.tls_key_password is not None:
        options["ssl.key.password"] = settings.tls_key_password.get_secret_value()
    if settings.sasl_username is not None and settings.sasl_password is not None:
        options["sasl.mechanism"] = settings.sasl_mechanism
        options["sasl.username"] = settings.sasl_username
        options["sasl.password"] = settings.sasl_password.get_secret_value()
    return options


def faust_credentials(settings: Settings) -> faust.SASLCredentials | faust.SSLCredentials | None:
    """What Faust calls `broker_credentials`; None for a broker that asks for none."""
    context = tls_context(settings)
    if settings.sasl_username is not None and settings.sasl_password is not None:
        return faust.SASLCredentials(
            username=settings.sasl_username,
            password=settings.sasl_password.get_secret_value(),
            ssl_context=context,
            mechanism=settings.sasl_mechanism,
        )
    return None if context is None else faust.SSLCredentials(context)
