"""One set of settings, said alike to the three clients."""

import inspect
import ssl
import subprocess
import sys

import faust
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from stream.connection import aiokafka_options, confluent_options, faust_credentials, tls_context
from stream.errors import SettingsError
from stream.settings import Settings

# Made for these tests alone, with `openssl req -x509 -newkey ed25519`; valid until 2126. The encrypted key is
# the same one, under the password "sesame".
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBPjCB8aADAgECAhQ3+CX1kLs4C7ypFpyZP7WDZBxBvjAFBgMrZXAwFDESMBAG
A1UEAwwJbG9jYWxob3N0MCAXDTI2MTIwMTA1MDIzMVoYDzIxMjYxMTA3MDUwMjMx
WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwKjAFBgMrZXADIQCMltY5smtaCmFrm6cT
FXOxG80atLzMUo45oBO77xjlDaNTMFEwHQYDVR0OBBYEFEUocf8dSFMKhVUADLY4
StWFRhR6MB8GA1UdIwQYMBaAFEUocf8dSFMKhVUADLY4StWFRhR6MA8GA1UdEwEB
/wQFMAMBAf8wBQYDK2VwA0EAJAHkfSzj0QbRGkAoV7Y+pvMl0Vc5EywOkxuVSlhj
UynEYPF39bAI85gQyPd5kzNwXJBWDJnOXyHBJs/O5FrtBA==
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIB1XMF77nflK8swu388AndWkHWpeaPYC6dxeOM8OrTI9
-----END PRIVATE KEY-----
"""
ENCRYPTED_KEY = """\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjfaoyOQPKKfwICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEKfJNodZaOdulTprWOVl7VsEQJKd
jMs5C2T3rqF8oICSk6F8/IZ0gtW2FmdaJuTYpMIKf6SptwOmCg92yrwV6Q42TVvJ
vrvYZ3e60hCVqIQMsfQ=
-----END ENCRYPTED PRIVATE KEY-----
"""
PROTOCOLS = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]


@pytest.fixture
def files(tmp_path):
    """The settings of TLS with files that fit together."""
    for name, content in (
        ("c.pem", CERTIFICATE),
        ("k.pem", KEY),
        ("e.pem", ENCRYPTED_KEY),
        ("junk.pem", "junk"),
    ):
        (tmp_path / name).write_text(content)
    return {
        "tls_ca_file": tmp_path / "c.pem",
        "tls_certificate_file": tmp_path / "c.pem",
        "tls_key_file": tmp_path / "k.pem",
    }


@pytest.fixture
def settings_of(files):
    """Settings of a protocol, with user and files where it takes them."""

    def settings(protocol, **overrides):
        user = {"sasl_username": "user", "sasl_password": "zebra", "sasl_mechanism": "SCRAM-SHA-512"}
        return Settings(
            broker="one:9092,two:9093",
            security_protocol=protocol,
            **(user if protocol.startswith("SASL") else {}),
            **({**files, **overrides} if protocol.endswith("SSL") else {}),
        )

    return settings


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_three_clients_are_told_the_same(settings_of, protocol):
    settings = settings_of(protocol)
    aiokafka, confluent = aiokafka_options(settings), confluent_options(settings)
    by_faust = credentials_to_aiokafka_auth(faust_credentials(settings), None)
    assert (
        aiokafka["bootstrap_servers"] == confluent["bootstrap.servers"].split(",") == ["one:9092", "two:9093"]
    )
    assert aiokafka["security_protocol"] == confluent["security.protocol"] == protocol
    assert by_faust["security_protocol"] == protocol
    for name in ("sasl_mechanism", "sasl_plain_username", "sasl_plain_password"):
        assert aiokafka.get(name) == by_faust.get(name)
    assert aiokafka.get("sasl_mechanism") == confluent.get("sasl.mechanism")
    assert aiokafka.get("sasl_plain_username") == confluent.get("sasl.username")
    assert aiokafka.get("sasl_plain_password") == confluent.get("sasl.password")
    assert (
        (aiokafka["ssl_context"] is None) == (by_faust.get("ssl_context") is None) == (not settings.uses_tls)
    )
    assert {name for name in confluent if name.startswith("ssl.")} == (
        {"ssl.ca.location", "ssl.certificate.location", "ssl.key.location"} if settings.uses_tls else set()
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_every_client_takes_its_options(settings_of, protocol):
    settings = settings_of(protocol)
    for client in (AIOKafkaConsumer, AIOKafkaProducer):
        known = inspect.signature(client).parameters
        assert set(aiokafka_options(settings)) <= set(known)
        await client(**aiokafka_options(settings)).stop()
    AdminClient({**confluent_options(settings), "log_level": 0}, logger=None)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_there_is_no_tls_where_the_protocol_asks_for_none(settings_of, protocol):
    assert tls_context(settings_of(protocol)) is None
    assert aiokafka_options(settings_of(protocol))["ssl_context"] is None


def test_a_broker_that_asks_for_nothing_is_given_no_credentials(settings_of):
    assert faust_credentials(settings_of("PLAINTEXT")) is None
    assert isinstance(faust_credentials(settings_of("SSL")), faust.SSLCredentials)
    assert isinstance(faust_credentials(settings_of("SASL_PLAINTEXT")), faust.SASLCredentials)


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_tls_checks_the_broker_by_name_against_the_authorities_given(settings_of, protocol):
    context = tls_context(settings_of(protocol))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert len(context.get_ca_certs()) == 1


def test_without_a_file_the_authorities_of_the_system_are_trusted(settings_of):
    settings = settings_of("SSL", tls_ca_file=None)
    expected = ssl.create_default_context().get_ca_certs()
    assert tls_context(settings).get_ca_certs() == expected
    assert "ssl.ca.location" not in confluent_options(settings)


def test_an_encrypted_key_is_opened_with_its_password(settings_of, files):
    key = files["tls_key_file"].with_name("e.pem")
    settings = settings_of("SSL", tls_key_file=key, tls_key_password="sesame")  # noqa: S106 - see above
    assert tls_context(settings) is not None
    assert confluent_options(settings)["ssl.key.password"] == "sesame"
    AdminClient({**confluent_options(settings), "log_level": 0}, logger=None)


@pytest.mark.parametrize("password", [None, "wrong-zebra"])
def test_an_encrypted_key_without_its_password_is_refused_and_nobody_is_asked(settings_of, files, password):
    key = files["tls_key_file"].with_name("e.pem")
    settings = settings_of("SSL", tls_key_file=key, tls_key_password=password)
    with pytest.raises(SettingsError, match="TLS_KEY_PASSWORD") as refused:
        tls_context(settings)
    assert str(key) in str(refused.value)
    assert "zebra" not in str(refused.value)


def test_openssl_never_asks_for_the_password_of_a_key(files):
    key = files["tls_key_file"].with_name("e.pem")
    code = f"""
from stream.connection import tls_context
from stream.settings import Settings
tls_context(Settings(security_protocol="SSL", tls_certificate_file={str(files["tls_certificate_file"])!r},
                     tls_key_file={str(key)!r}))
"""
    # In a session without a terminal OpenSSL would read the answer from here.
    asked = subprocess.run(
        [sys.executable, "-c", code], input="sesame\n", text=True, capture_output=True, start_new_session=True
    )
    assert "SettingsError" in asked.stderr
    assert "pass phrase" not in asked.stderr + asked.stdout


@pytest.mark.parametrize("client", [tls_context, aiokafka_options, faust_credentials])
@pytest.mark.parametrize("name", ["missing.pem", "junk.pem"])
@pytest.mark.parametrize("setting", ["tls_ca_file", "tls_certificate_file", "tls_key_file"])
def test_a_file_that_is_missing_or_no_pem_is_named_with_its_setting(
    settings_of, files, client, name, setting
):
    path = files[setting].with_name(name)
    settings = settings_of("SSL", **{setting: path})
    with pytest.raises(SettingsError) as refused:
        client(settings)
    assert f"TEXTSIEVE_{setting.upper()}={path}" in str(refused.value)


def test_passwords_stand_in_no_repr_of_faust_credentials(settings_of):
    assert "zebra" not in repr(faust_credentials(settings_of("SASL_SSL")))


def test_librdkafka_refuses_a_wrong_option_so_the_others_are_right(settings_of):
    with pytest.raises(KafkaException):
        AdminClient({**confluent_options(settings_of("PLAINTEXT")), "sasl.usernam": "x"}, logger=None)
