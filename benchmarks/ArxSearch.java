import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXLattice.ARXNode;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.DataHandle;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;

/**
 * ARX's optimal search for k-anonymity with the least loss of entropy, run several times in one process.
 *
 * <p>Arguments: TABLE.csv (fields separated by semicolons), k, the share of rows that may be suppressed, the seconds
 * that it is run for at least, and for each column in order COLUMN=HIERARCHY.csv. Prints one line of JSON. What is timed
 * is the search alone: ARX has read the table and the hierarchies, but not yet encoded them.
 */
public final class ArxSearch {
  private ArxSearch() {}

  public static void main(String[] arguments) throws Exception {
    String table = arguments[0];
    int k = Integer.parseInt(arguments[1]);
    double suppressed = Double.parseDouble(arguments[2]);
    double least = Double.parseDouble(arguments[3]);
    Map<String, String> hierarchies = new LinkedHashMap<>();
    for (int place = 4; place < arguments.length; place++) {
      int equals = arguments[place].indexOf('=');
      hierarchies.put(arguments[place].substring(0, equals), arguments[place].substring(equals + 1));
    }
    List<String> seconds = new ArrayList<>();
    String found = "";
    double total = 0;
    while (total < least || seconds.isEmpty()) {
      Data data = open(table, hierarchies);
      ARXConfiguration configuration = ARXConfiguration.create();
      configuration.addPrivacyModel(new KAnonymity(k));
      configuration.setSuppressionLimit(suppressed);
      // Monotone: rows that are suppressed cost nothing, as in the figures that are published.
      configuration.setQualityModel(Metric.createPrecomputedEntropyMetric(0.1d, true));
      long started = System.nanoTime();
      ARXResult result = new ARXAnonymizer().anonymize(data, configuration);
      double taken = (System.nanoTime() - started) / 1e9;
      total += taken;
      seconds.add(String.format(Locale.ROOT, "%.6f", taken));
      found = describe(result, hierarchies.keySet());
    }
    System.out.println("{\"seconds\": [" + String.join(", ", seconds) + "], " + found + "}");
  }

  private static Data open(String table, Map<String, String> hierarchies) throws Exception {
    Data data = Data.create(table, StandardCharsets.UTF_8, ';');
    DataHandle handle = data.getHandle();
    for (int column = 0; column < handle.getNumColumns(); column++) {
      data.getDefinition().setAttributeType(handle.getAttributeName(column), AttributeType.INSENSITIVE_ATTRIBUTE);
    }
    for (Map.Entry<String, String> entry : hierarchies.entrySet()) {
      Hierarchy hierarchy = Hierarchy.create(entry.getValue(), StandardCharsets.UTF_8, ';');
      data.getDefinition().setAttributeType(entry.getKey(), hierarchy);
    }
    return data;
  }

  private static String describe(ARXResult result, Iterable<String> columns) {
    ARXNode best = result.getGlobalOptimum();
    List<String> levels = new ArrayList<>();
    if (best != null) {
      for (String column : columns) {
        levels.add(Integer.toString(best.getGeneralization(column)));
      }
    }
    return "\"levels\": [" + String.join(", ", levels) + "], "
        + "\"loss\": " + (best == null ? "null" : best.getLowestScore().toString()) + ", "
        + "\"optimal\": " + result.getOptimumFound() + ", "
        + "\"checks\": " + result.getProcessStatistics().getTransformationsChecked() + ", "
        + "\"nodes\": " + result.getProcessStatistics().getTransformationsAvailable();
  }
}
