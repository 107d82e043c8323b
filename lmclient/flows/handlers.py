"""The handlers that come with flows."""

from lmclient.flows.csv_handler import CsvHandler as CsvHandler
from lmclient.flows.csv_handler import CsvRowsHandler as CsvRowsHandler
from lmclient.flows.handlers_text import AccumulateTextHandler as AccumulateTextHandler
from lmclient.flows.handlers_text import TextHandler as TextHandler
from lmclient.flows.handlers_tools import ToolCallingHandler as ToolCallingHandler
from lmclient.flows.json_handler import JsonHandler as JsonHandler
