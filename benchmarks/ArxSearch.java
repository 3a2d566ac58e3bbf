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
import org.deidentifier.arx.criteria.BasicBLikeness;
import org.deidentifier.arx.criteria.DDisclosurePrivacy;
import org.deidentifier.arx.criteria.DistinctLDiversity;
import org.deidentifier.arx.criteria.EnhancedBLikeness;
import org.deidentifier.arx.criteria.EntropyLDiversity;
import org.deidentifier.arx.criteria.EqualDistanceTCloseness;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.criteria.PrivacyCriterion;
import org.deidentifier.arx.criteria.RecursiveCLDiversity;
import org.deidentifier.arx.metric.Metric;

/**
 * ARX's optimal search by criteria on classes with the least loss of entropy, run several times in one process.
 *
 * <p>Arguments: TABLE.csv (fields separated by semicolons), criteria as gpupif writes them (separated by semicolons), the
 * share of rows that may be suppressed, the seconds that it is run for at least, and for each quasi-identifier in order
 * COLUMN=HIERARCHY.csv. Prints one line of JSON. The search alone is timed: ARX has read the table and the hierarchies,
 * but has not yet encoded them.
 */
public final class ArxSearch {
  private ArxSearch() {}

  public static void main(String[] arguments) throws Exception {
    String table = arguments[0];
    String[] criteria = arguments[1].split(";");
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
      for (String text : criteria) {
        PrivacyCriterion criterion = read(text);
        configuration.addPrivacyModel(criterion);
        if (!text.startsWith("k>=")) {
          data.getDefinition().setAttributeType(attribute(text), AttributeType.SENSITIVE_ATTRIBUTE);
        }
      }
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

  private static String attribute(String text) {
    return text.substring(text.indexOf('(') + 1, text.indexOf(')')).split(",")[0];
  }

  private static PrivacyCriterion read(String text) {
    double limit = Double.parseDouble(text.substring(text.indexOf("=", Math.max(0, text.indexOf(')'))) + 1));
    if (text.startsWith("k>=")) {
      return new KAnonymity((int) limit);
    }
    switch (text.substring(0, text.indexOf('('))) {
      case "distinct_l":
        return new DistinctLDiversity(attribute(text), (int) limit);
      case "entropy_l":
        return new EntropyLDiversity(attribute(text), limit);
      case "recursive_c":
        String values = text.substring(text.indexOf("l=") + 2, text.indexOf(')'));
        return new RecursiveCLDiversity(attribute(text), limit, Integer.parseInt(values));
      case "t":
        return new EqualDistanceTCloseness(attribute(text), limit);
      case "basic_beta":
        return new BasicBLikeness(attribute(text), limit);
      case "enhanced_beta":
        return new EnhancedBLikeness(attribute(text), limit);
      case "delta":
        // ARX measures delta in bits, gpupif in nats.
        return new DDisclosurePrivacy(attribute(text), limit / Math.log(2));
      default:
        throw new IllegalArgumentException(text);
    }
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
